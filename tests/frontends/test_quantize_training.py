"""Training of networks from quant.quantize, compared with a network that quant.load reads: the same integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim, quant
from autodiff_gen.errors import ModelError
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import Value, topological

pytestmark = pytest.mark.cc

SHAPE, BATCH, CLASSES = (3, 8, 8), 4, 3
NAMES = ("0", "3", "5", "8")
OPS = ("conv2d_s8", "depthwise2d_s8", "avg_pool2d_s8", "dense_s8")
OPTIONS: dict[str, dict[str, Any]] = {"0": {"stride": 2, "padding": 1}, "3": {"padding": 1, "groups": 8}}


def quantized() -> Any:
    rng = np.random.default_rng(2)
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, padding=1, groups=8),
        nn.ReLU6(),
        nn.Conv2d(8, 6, 1),
        nn.AvgPool2d(4),
        nn.Flatten(),
        nn.Linear(6, 12),
        nn.ReLU(),
    )
    numbers = {k: rng.normal(0.1, 0.5, v.shape) for k, v in net.named_parameters()}
    net.load_state_dict(numbers, strict=False)
    return quant.quantize(net, rng.normal(size=(64, *SHAPE)).astype(np.float32))


def loaded(net: Any) -> quant.Network:
    """The same network, from the arrays and the numbers of the ops of another one."""
    result = net.quantized(ag.Input("x", (1, *SHAPE)))
    nodes = topological([result])
    (first,) = (n.results[0].type.quantization for n in nodes if n.op.name == "quantize")
    layers: list[dict[str, Any]] = [
        {"name": "input", "op": "quantize", "scale": first.scale, "zero_point": first.zero_point}
    ]
    weights = iter(NAMES)
    arrays: dict[str, Any] = {}
    for n in (n for n in nodes if n.op.name in OPS):
        if n.op.name == "avg_pool2d_s8":
            layers += [{"name": "pool", "op": "avg_pool2d"}, {"name": "flat", "op": "flatten"}]
            continue
        of, name = n.attrs["quantization"], next(weights)
        kind = "linear" if n.op.name == "dense_s8" else "conv2d"
        numbers = {
            "scale": of.scale,
            "zero_point": of.zero_point,
            "low": n.attrs["low"],
            "high": n.attrs["high"],
        }
        layers.append({"name": name, "op": kind, **numbers, **OPTIONS.get(name, {})})
        own = dict(net.named_modules())[name].arrays
        arrays |= {f"{name}.{k}": np.asarray(v) for k, v in own.items()}
        arrays[f"{name}.weight_scales"] = arrays[f"{name}.weight_scales"].astype(np.float64)
    return quant.load({**arrays, "layers": layers})


class Net(nn.Module):
    def __init__(self, backbone: nn.Module) -> None:
        super().__init__()
        self.backbone, self.head = backbone, nn.Linear(12, CLASSES)

    def forward(self, x: Any) -> Value:
        return self.head(self.backbone(x))


def train(backbone: nn.Module, master: bool) -> Any:
    layers = dict(backbone.named_modules())
    for name in NAMES[1:]:
        if master:
            layers[name].use_master_copy()
        layers[name].weight.requires_grad = layers[name].bias.requires_grad = True
    nn.update_channels(layers["5"], 0.5)
    model = ag.Model.supervised(
        Net(backbone), (BATCH, *SHAPE), nn.CrossEntropyLoss(), optim.SGD(lr=0.1, momentum=0.9)
    )
    return model.on_host()


def data(steps: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    label = rng.integers(0, CLASSES, steps * BATCH)
    return (rng.normal(0, 0.7, (len(label), *SHAPE)) + label[:, None, None, None] / 2).astype(
        np.float32
    ), label


@pytest.mark.parametrize("master", [False, True])
def test_it_trains_as_a_network_that_was_loaded(master: bool) -> None:
    mine, other = train(quantized(), master), train(loaded(quantized()), master)
    x, label = data(40)
    first, losses = mine.state_dict(), []
    for k in range(0, len(x), BATCH):
        losses.append(mine.train_step(x[k : k + BATCH], label[k : k + BATCH]))
        assert losses[-1] == other.train_step(x[k : k + BATCH], label[k : k + BATCH])
    assert np.mean(losses[-10:]) < 0.9 * np.mean(losses[:10])
    last, expected = mine.state_dict(), other.state_dict()
    assert list(last) == list(expected)
    for name, value in last.items():
        np.testing.assert_array_equal(value, expected[name], err_msg=name)
    assert {k for k in last if k.startswith("backbone.") and k.endswith("weight")} == {
        f"backbone.{name}.weight" for name in NAMES[1:]
    }
    for name in NAMES[1:]:
        assert (last[f"backbone.{name}.weight"] != first[f"backbone.{name}.weight"]).any()


def test_what_does_not_train_is_constant_and_computes_the_same() -> None:
    net = quantized()
    x, _ = data(1)
    frozen = ag.Model.supervised(
        Net(net), (BATCH, *SHAPE), nn.CrossEntropyLoss(), optim.SGD(lr=0.1)
    ).on_host()
    assert not any(k.startswith("backbone") for k in frozen.state_dict())
    before = train(quantized(), False)
    before.load_state_dict(
        {**before.state_dict(), **{k: v for k, v in frozen.state_dict().items() if k.startswith("head")}}
    )
    np.testing.assert_array_equal(frozen.predict(x), before.predict(x))


def test_trained_weights_are_loaded_into_a_network_that_does_not_train() -> None:
    mine = train(quantized(), False)
    x, label = data(5)
    for k in range(0, len(x), BATCH):
        mine.train_step(x[k : k + BATCH], label[k : k + BATCH])
    net = quantized()
    state = {
        k.removeprefix("backbone."): v for k, v in mine.state_dict().items() if k.startswith("backbone.")
    }
    net.load_state_dict({k: v for k, v in state.items() if "momentum" not in k}, strict=False)
    frozen = ag.Model.supervised(
        Net(net), (BATCH, *SHAPE), nn.CrossEntropyLoss(), optim.SGD(lr=0.1)
    ).on_host()
    head = {k: v for k, v in mine.state_dict().items() if k in ("head.weight", "head.bias")}
    frozen.load_state_dict(head)
    np.testing.assert_array_equal(frozen.predict(x[:BATCH]), mine.predict(x[:BATCH]))
    assert "accuracy: " in net.report(x, label)


def test_a_layer_that_is_called_twice_has_weights_for_each_call() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc, self.fc_2 = nn.Linear(4, 4), nn.Linear(4, 3)

        def forward(self, x: Any) -> Value:
            return self.fc_2(self.fc(self.fc(x)))

    x = np.random.default_rng(1).normal(size=(16, 4)).astype(np.float32)
    net = quant.quantize(Twice(), x)
    assert [name for name, _ in net.named_modules()] == ["", "fc", "fc_3", "fc_2"]


def test_layers_without_a_bias_have_one() -> None:
    """Of the BatchNorm after them, or of zeros."""
    names = [name for name, _ in quantized().named_parameters()]
    assert names == [f"{name}.{kind}" for name in NAMES for kind in ("weight", "bias")]
    with pytest.raises(ModelError, match=r"'3.weight' is in a model already"):
        net = quantized()
        net(ag.Input("x", (1, *SHAPE)))
        dict(net.named_modules())["3"].weight.requires_grad = True


def linear_layers() -> tuple[Any, Any]:
    """Three quantised linear layers of 8 channels whose parameters all train, and their calibration data."""
    x = np.random.default_rng(6).normal(size=(32, 8)).astype(np.float32)
    net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
    backbone = quant.quantize(net, x)
    for parameter in backbone.parameters():
        parameter.requires_grad = True
    return backbone, x


def regression(backbone: nn.Module) -> Any:
    return ag.Model.supervised(
        nn.Sequential(backbone, nn.Linear(8, 2)), (BATCH, 8), nn.MSELoss(), optim.SGD(lr=0.5)
    ).on_host()


def test_channels_of_linear_layers_train_as_with_all_channels() -> None:
    """After one step the channels that train have the values of a layer that trains whole."""
    chosen, after = [1, 6], []
    for channels in (range(8), chosen):
        backbone, x = linear_layers()
        for name, layer in backbone.named_modules():
            if name:
                nn.update_channels(layer.use_master_copy(), channels)
        trainer = regression(backbone)
        first = trainer.state_dict()
        trainer.train_step(x[:BATCH], np.ones((BATCH, 2), np.float32))
        after.append(trainer.state_dict())
    whole, part = after
    rest = [k for k in range(8) if k not in chosen]
    for name in ("0.0.weight", "0.2.weight", "0.4.weight"):
        np.testing.assert_array_equal(part[name][:, chosen], whole[name][:, chosen])
        np.testing.assert_array_equal(part[name][:, rest], first[name][:, rest])


@pytest.mark.parametrize("channels", [None, [1, 6]])
def test_8_bit_weights_of_linear_layers_train(channels: Any) -> None:
    backbone, x = linear_layers()
    for name, layer in backbone.named_modules():
        if name and channels is not None:
            nn.update_channels(layer, channels)
    trainer = regression(backbone)
    losses = [trainer.train_step(x[:BATCH], np.ones((BATCH, 2), np.float32)) for _ in range(20)]
    assert losses[-1] < 0.1 * losses[0]


def test_a_master_copy_keeps_the_channels_and_what_was_loaded() -> None:
    net = quantized()
    layer = dict(net.named_modules())["5"]
    net.load_state_dict({"5.weight": np.full((6, 8, 1, 1), 3)}, strict=False)
    nn.update_channels(layer, [0, 2])
    channels, scales = layer.weight.channels, np.asarray(layer.arrays["weight_scales"])
    layer.use_master_copy()
    assert layer.weight.channels == channels and layer.weight.requires_grad
    np.testing.assert_allclose(layer.weight.start[:, 0, 0, 0], 3 * scales)


def test_a_report_of_a_network_that_will_train() -> None:
    net = quantized()
    x, _ = data(2)
    constant = net.report(x)
    parameters = list(net.parameters())
    assert net.report(x) == constant
    for parameter in parameters:
        parameter.requires_grad = True  # a report puts them in no model
    assert net.report(x).splitlines()[:-1] == constant.splitlines()[:-1]
    dict(net.named_modules())["5"].use_master_copy()
    assert net.report(x).splitlines()[:-1] == constant.splitlines()[:-1]


def test_an_input_with_another_scale() -> None:
    """Biases are in units of the input's scale."""
    rng = np.random.default_rng(8)
    weight, bias = rng.normal(size=(4, 6)), np.array([3.0, -2.0, 1.0, 0.0])
    layer = nn.Linear(6, 4)
    layer.load_state_dict({"weight": weight, "bias": bias})
    x = rng.uniform(-2, 2, (16, 6)).astype(np.float32)
    net, scale = quant.quantize(layer, x), 0.04
    given = ag.Input("x", (16, 6))
    (y,) = evaluate([net(F.quantize(given, scale, 3))], {given: x})
    np.testing.assert_allclose(y, np.rint(x / scale) * scale @ weight.T + bias, atol=0.1)


def test_channels_of_groups_are_not_those_of_the_input() -> None:
    x = np.random.default_rng(9).normal(size=(8, 8, 4, 4)).astype(np.float32)
    net = quant.quantize(nn.Sequential(nn.Conv2d(8, 4, 3, groups=4)), x)
    with pytest.raises(ModelError, match="has no weights by input channel"):
        nn.update_channels(dict(net.named_modules())["0"], 0.5)


class Recurrent(nn.Module):
    """Starts with a state of zeros for each sample."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(8, 8, batch_first=True)

    def forward(self, x: Any) -> Value:
        return self.gru(x.reshape(x.shape[0], 1, 8))[0][:, 0]


class Scaled(nn.Module):
    """Multiplies by one number for each feature of each sample."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x: Any) -> Value:
        numbers = F.expand(np.arange(8, dtype=np.float32)[None], (x.shape[0], 8))
        return F.relu(self.fc(x)) * numbers


@pytest.mark.parametrize("net", [Recurrent(), Scaled()])
def test_constants_of_a_run_time_batch(net: nn.Module) -> None:
    x = np.random.default_rng(10).normal(size=(32, 8)).astype(np.float32)
    backbone = quant.quantize(net, x, fallback=True)
    for parameter in backbone.parameters():
        parameter.requires_grad = True
    trainer = regression(backbone)
    whole = trainer.predict(x[:BATCH])
    np.testing.assert_array_equal(trainer.predict(x[:1]), whole[:1])
    trainer.train_step(x[:2], np.zeros((2, 2), np.float32))
