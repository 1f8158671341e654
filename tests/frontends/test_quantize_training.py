"""Training of what quant.quantize returns, compared with a network that quant.load reads: the same integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import nn, optim, quant
from autodiff_gen.errors import ModelError
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
            self.fc = nn.Linear(4, 4)

        def forward(self, x: Any) -> Value:
            return self.fc(self.fc(x))

    x = np.random.default_rng(1).normal(size=(16, 4)).astype(np.float32)
    net = quant.quantize(Twice(), x)
    assert [name for name, _ in net.named_modules()] == ["", "fc", "fc_2"]


def test_layers_without_a_bias_have_one() -> None:
    """Of the BatchNorm after them, or of zeros."""
    names = [name for name, _ in quantized().named_parameters()]
    assert names == [f"{name}.{kind}" for name in NAMES for kind in ("weight", "bias")]
    with pytest.raises(ModelError, match=r"'3.weight' is in a model already"):
        net = quantized()
        net(ag.Input("x", (1, *SHAPE)))
        dict(net.named_modules())["3"].weight.requires_grad = True
