"""Quantised networks: loaded ones against float64, quantised ones against the float network; float heads on them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from int8_networks import published, random_network, simulated

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim, quant
from autodiff_gen.autodiff import grad
from autodiff_gen.errors import ModelError
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import Value, topological
from autodiff_gen.ir.quantization import Quantization

NETWORKS = {"random": None, **{path.stem: path for path in published()}}


def arrays_of(name: str) -> dict[str, Any]:
    path = NETWORKS[name]
    if path is None:
        return random_network(np.random.default_rng(3))
    with np.load(path) as file:
        return {k: file[k] for k in file.files}


def photograph(rng: np.random.Generator, size: int) -> Any:
    """An image of soft blobs, [1, 3, size, size] between -1 and 1."""
    y, x = np.mgrid[0:size, 0:size] / size
    image = np.zeros((3, size, size))
    for _ in range(12):
        (a, b), width = rng.uniform(0, 1, 2), rng.uniform(0.05, 0.4)
        image += rng.uniform(-1, 1, (3, 1, 1)) * np.exp(-((x - a) ** 2 + (y - b) ** 2) / width**2)
    return np.tanh(image)[None].astype(np.float32)


def layer_values(net: quant.Network, x: Value) -> dict[str, Value]:
    """The result of each layer, s8."""
    values: dict[str, Value] = {}
    last = x
    for layer, module in zip(net.layers, net.children(), strict=True):
        last = values[layer.name] = module(*([values[name] for name in layer.inputs] or [last]))
    return values


@pytest.mark.parametrize("name", NETWORKS)
def test_each_layer_is_that_of_float64(name: str, rng: np.random.Generator) -> None:
    """Given the same operands a layer's integers differ by one at most, where two roundings differ from one; and the
    network has the same first class. The second rounding is all that differs: with one, scores are within 1."""
    arrays = arrays_of(name)
    size = 16 if name == "random" else 128
    array = photograph(rng, size)
    x = ag.Input("x", (1, 3, size, size))
    values = layer_values(quant.load(dict(arrays)), x)
    found = dict(zip(values, evaluate(list(values.values()), {x: array}), strict=True))
    whole, once, twice = (simulated(arrays, array, rounding) for rounding in ("float64", "once", "twice"))
    assert np.argmax(found["classifier"]) == np.argmax(whole["classifier"])
    for layer_name, integers in found.items():
        np.testing.assert_array_equal(integers, twice[layer_name], layer_name)
    assert np.max(np.abs(once["classifier"] - whole["classifier"])) <= 1
    layers = json.loads(str(arrays["layers"]))
    for before, layer in zip(["input", *(entry["name"] for entry in layers)], layers, strict=False):
        if layer["kind"] in ("global average pool", "add"):
            continue
        one = {**arrays, "layers": json.dumps([layer])}
        alone = simulated(one, found[before] / 127.5)[layer["name"]]
        assert np.max(np.abs(alone - found[layer["name"]])) <= 1, layer["name"]
        assert np.mean(alone != found[layer["name"]]) < 0.02, layer["name"]
    assert np.ptp(found["classifier"].astype(int)) > 20


@pytest.mark.cc
@pytest.mark.parametrize("name", ["random", *list(NETWORKS)[1:2]])
def test_c_computes_the_same_bits(name: str, rng: np.random.Generator) -> None:
    size = 16 if name == "random" else 128
    x = ag.Input("x", (1, 3, size, size))
    y = quant.load(arrays_of(name)).quantized(x)
    array = photograph(rng, size)
    got = ag.function([x], [y]).on_host(kernels="ref")(array)
    np.testing.assert_array_equal(np.reshape(got, y.shape), evaluate([y], {x: array})[0])


class Adapted(nn.Module):
    """A float head on a quantised backbone."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = quant.load(random_network(np.random.default_rng(3)))
        self.head = nn.Linear(10, 4)

    def forward(self, x: Value) -> Value:
        return self.head(F.flatten(self.backbone(x), 1))


@pytest.mark.cc
def test_a_float_head_trains_on_a_frozen_backbone(rng: np.random.Generator) -> None:
    loss, sgd = nn.CrossEntropyLoss(), optim.SGD(lr=0.02)
    model = ag.Model.supervised(Adapted(), input=(1, 3, 16, 16), loss=loss, optimizer=sgd)
    assert [state.name for state in model.states] == ["head.weight", "head.bias"]
    trainer = model.on_host(kernels="ref")
    images = [photograph(rng, 16) for _ in range(4)]
    losses = [trainer.train_step(images[k % 4], np.array([k % 4])) for k in range(200)]
    assert np.mean(losses[-4:]) < 0.5 * np.mean(losses[:4])


# Quantisation after training


class Residual(nn.Module):
    """Everything that is folded, absorbed, matched and pooled."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.relu6 = nn.ReLU6()
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.project = nn.Conv2d(8, 8, 1)
        self.pool = nn.MaxPool2d(2)
        self.linear = nn.Linear(16, 5)

    def forward(self, x: Value) -> Value:
        y = self.relu6(self.norm(self.conv(x)))
        z = F.relu(self.project(self.depthwise(y)) + y)
        z = F.cat([self.pool(z), F.avg_pool2d(z, 2)], 1)
        return self.linear(z.mean((2, 3)))


def trained_statistics(module: nn.Module, rng: np.random.Generator) -> nn.Module:
    """The module with BatchNorm's numbers as after training."""
    own = dict(module.named_buffers())
    state = {
        name: v.node.attrs["state"].init.array() for name, v in (*module.named_parameters(), *own.items())
    }
    state["norm.running_mean"] = rng.normal(0, 0.3, 8).astype(np.float32)
    state["norm.running_var"] = rng.uniform(0.2, 2, 8).astype(np.float32)
    state["norm.weight"] = rng.uniform(-1.5, 1.5, 8).astype(np.float32)
    state["norm.bias"] = rng.normal(0, 0.5, 8).astype(np.float32)
    fresh = type(module)()
    fresh.load_state_dict(state)
    return fresh


@pytest.fixture
def samples(rng: np.random.Generator) -> Any:
    return rng.normal(size=(70, 3, 8, 8)).astype(np.float32)


def ratios(report: str) -> dict[str, float]:
    """The SQNR of each layer that a report names."""
    lines = [line.split() for line in report.splitlines() if line.endswith(" dB")]
    return {words[0]: float(words[1]) for words in lines}


@pytest.mark.parametrize("method", ["minmax", "percentile", "mse"])
def test_quantised_is_close_to_float(method: str, samples: Any, rng: np.random.Generator) -> None:
    net = quant.quantize(trained_statistics(Residual(), rng), samples, method)
    labels = rng.integers(0, 5, len(samples))
    report = net.report(samples, labels)
    found = ratios(report)
    assert list(found) == ["input", "conv", "depthwise", "project", "add", "linear"]
    assert all(ratio > (20 if method == "percentile" else 28) for ratio in found.values()), report
    assert "accuracy: " in report and "parameters: 1,944 bytes in float" in report


@pytest.mark.cc
def test_a_quantised_part_is_integers_alone(samples: Any, rng: np.random.Generator) -> None:
    """One kernel a layer and nothing in float between the ends; C gives the bits of NumPy."""
    net = quant.quantize(trained_statistics(Residual(), rng), samples)
    x = ag.Input("x", (2, 3, 8, 8))
    y = net(x)
    ops = [
        n.op.name
        for n in topological([y])
        if not n.op.name.startswith(("const", "input", "permute", "reshape"))
    ]
    assert ops == [
        "quantize", "conv2d_s8", "depthwise2d_s8", "conv2d_s8", "add_s8", "max_pool2d_s8", "avg_pool2d_s8", "assemble",
        "avg_pool2d_s8", "dense_s8", "dequantize",
    ]  # fmt: skip
    got = ag.function([x], [y]).on_host(kernels="ref")(samples[:2])
    np.testing.assert_array_equal(np.reshape(got, (2, 5)), evaluate([y], {x: samples[:2]})[0])


class Activations(nn.Module):
    """Functions of one tensor, as MobileNetV3 and EfficientNet have them, and a gate by channel."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3)
        self.squeeze = nn.Conv2d(6, 6, 1)
        self.project = nn.Conv2d(6, 4, 1)

    def forward(self, x: Value) -> Value:
        y = F.hardswish(self.conv(x))
        gate = F.sigmoid(self.squeeze(y.mean((2, 3), keepdim=True)))
        z = self.project(y * gate)
        return z * F.sigmoid(0.5 * z) + F.gelu(z) - 0.25


@pytest.mark.cc
def test_functions_of_one_tensor_are_tables(samples: Any) -> None:
    net = quant.quantize(Activations(), samples)
    x = ag.Input("x", (2, 3, 8, 8))
    y = net(x)
    assert net.float_ops == ()
    assert [n.op.name for n in topological([y])].count("lookup_s8") == 3
    assert min(ratios(net.report(samples)).values()) > 25
    values = [y, grad(F.sum(y), x)]
    got = ag.function([x], values).on_host(kernels="ref")(samples[:2])
    want = evaluate(values, {x: samples[:2]})
    np.testing.assert_array_equal(np.reshape(got[0], y.shape), want[0])
    assert np.abs(want[1]).max() > 0.01
    np.testing.assert_allclose(np.reshape(got[1], x.shape), want[1], rtol=1e-4, atol=1e-5)


class Probabilities(nn.Module):
    """Softmax of a product along its channels, read by two others; and softmax of scores at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3)
        self.softmax = nn.Softmax(1)
        self.linear = nn.Linear(12, 5)

    def forward(self, x: Value) -> Value:
        y = self.conv(x)
        gates = self.softmax(y)
        z = F.cat([F.relu(y) * gates, F.clamp(gates, 0.1, 0.6)], 1)
        return F.softmax(4.0 * self.linear(z.mean((2, 3))), -1)


@pytest.mark.cc
def test_softmax_is_one_kernel(samples: Any) -> None:
    """With the scale 1/256, or the scale of the values with which it shares elements."""
    net = quant.quantize(Probabilities(), samples)
    x = ag.Input("x", (2, 3, 8, 8))
    y = net(x)
    assert net.float_ops == ()
    names = [n.op.name for n in topological([y])]
    assert (
        names.count("softmax_s8") == 2
        and names.count("conv2d_s8") == 1
        and not {"exp", "amax", "div"} & set(names)
    )
    assert net.quantized(x).type.quantization == Quantization((1 / 256,), -128)
    assert min(ratios(net.report(samples)).values()) > 20
    got = ag.function([x], [y]).on_host(kernels="ref")(samples[:2])
    np.testing.assert_array_equal(np.reshape(got, y.shape), evaluate([y], {x: samples[:2]})[0])


def test_softmax_whose_parts_are_read() -> None:
    """Nothing else of it is on integers, so the rest is an error."""

    class Parts(nn.Module):
        def forward(self, x: Value) -> Value:
            most = F.amax(x, 1, keepdim=True)
            e = F.exp(x - F.detach(most))
            return e * (1.0 / F.sum(e, 1, keepdim=True)) + most

    x = np.linspace(-3, 4, 12, dtype=np.float32).reshape(4, 3)
    with pytest.raises(ModelError, match="no form on s8 of amax"):
        quant.quantize(Parts(), x)(ag.Input("x", (4, 3)))


class Differences(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 1)
        self.offset = nn.Parameter(np.linspace(-2, 2, 192, dtype=np.float32).reshape(3, 8, 8))

    def forward(self, x: Value) -> Value:
        return self.offset - F.relu(self.conv(x) - 0.8 * x)


@pytest.mark.cc
def test_differences_are_sums_with_signs(samples: Any) -> None:
    net = quant.quantize(Differences(), samples)
    x = ag.Input("x", (2, 3, 8, 8))
    y = net(x)
    assert [n.op.name for n in topological([y])].count("add_s8") == 2 and net.float_ops == ()
    assert min(ratios(net.report(samples)).values()) > 28
    got = ag.function([x], [y]).on_host(kernels="ref")(samples[:2])
    np.testing.assert_array_equal(np.reshape(got, y.shape), evaluate([y], {x: samples[:2]})[0])


class Normalised(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.LayerNorm((4, 6, 6))

    def forward(self, x: Value) -> Value:
        return F.relu(self.norm(self.conv(x)))


def test_an_op_without_form_on_s8(samples: Any) -> None:
    x = ag.Input("x", (1, 3, 8, 8))
    with pytest.raises(ModelError) as error:
        quant.quantize(Normalised(), samples)(x)
    assert str(error.value) == (
        "quantize: no form on s8 of standardize of layer 'norm'; leave the layer out of the part that is quantised, or "
        "give fallback=True, which computes it in float"
    )
    net = quant.quantize(Normalised(), samples, fallback=True)
    assert min(ratios(net.report(samples[:8])).values()) > 28
    net(x)
    assert net.float_ops == ("standardize",)


def test_the_general_format(tmp_path: Path) -> None:
    path = tmp_path / "net.npz"
    layers = [
        {"name": "in", "op": "quantize", "scale": 0.05, "zero_point": -3},
        {"name": "fc", "op": "linear", "scale": 0.1, "zero_point": 4, "low": -100, "high": 127},
    ]
    weight, scales = np.arange(-6, 6, dtype=np.int8).reshape(3, 4), np.array([0.1, 0.2, 0.3])
    np.savez(path, **{"layers": json.dumps(layers), "fc.weight": weight, "fc.weight_scales": scales})
    array = np.array([[0.3, -0.2, 1.0, 0.55]], np.float32)
    x = ag.Input("x", (1, 4))
    (got,) = evaluate([quant.load(path)(x)], {x: array})
    want = np.clip(array @ (weight.T * scales), 0.1 * -104, None)
    np.testing.assert_allclose(got, want, atol=0.051)


def spotter(batch: int) -> ag.Model:
    """A quantised part in the middle of a model with a run-time batch."""
    net = nn.Sequential(
        nn.Conv1d(3, 4, 3, bias=False), nn.BatchNorm1d(4), nn.ReLU(), nn.Flatten(), nn.Linear(40, 6)
    )
    part = quant.quantize(net, np.random.default_rng(2).normal(size=(20, 3, 12)))
    net.train()  # as a whole network is, after a part of it was quantised
    whole = nn.Sequential(part, nn.Linear(6, 2))
    return ag.Model.supervised(whole, (batch, 3, 12), nn.CrossEntropyLoss(), optim.SGD(lr=0.1))


@pytest.mark.cc
def test_a_run_time_batch(rng: np.random.Generator) -> None:
    trainer = spotter(4).on_host()
    x = rng.normal(size=(4, 3, 12)).astype(np.float32)
    one = np.concatenate([trainer.predict(x[i : i + 1]) for i in range(4)])
    np.testing.assert_allclose(trainer.predict(x), one, rtol=1e-6)
    assert np.ptp(one) > 0.01
    rows = quant.quantize(
        nn.Sequential(nn.Linear(16, 5), nn.ReLU(), nn.Linear(5, 4)), rng.normal(size=(9, 3, 16))
    )
    y = rows(ag.Input("x", (3, 3, 16), batch_axis=0))
    assert y.shape[1:] == (3, 4)


def test_a_loaded_softmax() -> None:
    """The biases of a layer after it are in units of 1/256 times its weights' scales."""
    layers = [
        {"name": "in", "op": "quantize", "scale": 0.05, "zero_point": -3},
        {"name": "weights", "op": "softmax", "dim": 1},
        {"name": "fc", "op": "linear", "scale": 0.01, "zero_point": 4},
    ]
    weight, bias = np.arange(-6, 6, dtype=np.int8).reshape(3, 4), np.array([50, -900, 3], np.int32)
    given = {"layers": layers, "fc.weight": weight, "fc.weight_scales": np.float64(0.125), "fc.bias": bias}
    net = quant.load(given)
    array = np.linspace(-3, 3, 8, dtype=np.float32).reshape(2, 4)
    x = ag.Input("x", (2, 4))
    (before,) = evaluate([net(x)], {x: array})
    softmax = F.quantized_softmax(F.quantize(x, 0.05, -3))
    y = F.quantized_linear(softmax, F.quantized_weight(weight, 0.125), bias, 0.01, 4)
    np.testing.assert_array_equal(before, evaluate([F.dequantize(y)], {x: array})[0])
    parameters = dict(quant.load(given).named_parameters())
    state = {k: p.node.attrs["state"].init.array() for k, p in parameters.items()}
    np.testing.assert_allclose(state["fc.bias"], bias * 0.125 / 256)


def test_what_is_loaded_depends_on_the_quantised_weights() -> None:
    """A checkpoint of one backbone does not fit another."""
    from autodiff_gen.codegen.compiler import compile_model

    def graph_id(scale: float) -> int:
        part = quant.quantize(nn.Linear(3, 4), scale * np.random.default_rng(2).normal(size=(20, 3)))
        net = nn.Sequential(part, nn.Linear(4, 2))
        model = ag.Model.supervised(net, (1, 3), nn.CrossEntropyLoss(), optim.SGD(lr=0.1))
        return compile_model(model, "m").graph_id

    assert graph_id(1.0) == graph_id(1.0) != graph_id(5.0)


def test_a_channel_that_is_always_at_a_limit(rng: np.random.Generator) -> None:
    """Its bias leaves the sums of its products room, and nothing overflows."""
    conv = nn.Conv2d(3, 4, 1)
    own = {name: v.node.attrs["state"].init.array() for name, v in conv.named_parameters()}
    fresh = nn.Conv2d(3, 4, 1)
    fresh.load_state_dict({**own, "bias": np.array([1e8, 1, 0, -1e8], np.float32)})
    net = quant.quantize(nn.Sequential(fresh, nn.Hardtanh()), rng.normal(size=(20, 3, 4, 4)))
    assert min(ratios(net.report(rng.normal(size=(8, 3, 4, 4)))).values()) > 30


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(3, 4, batch_first=True)

    def forward(self, x: Value) -> Value:
        return F.relu(self.gru(x)[0])


class Chosen(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 1)

    def forward(self, x: Value) -> Value:
        return F.to(F.argmax(self.conv(x), 1), "f32")


@pytest.mark.parametrize(("make", "shape"), [(Recurrent, (5, 3)), (Chosen, (3, 4, 4))])
def test_what_has_no_form_on_s8_is_computed_in_float(make: Any, shape: Any, rng: np.random.Generator) -> None:
    samples = rng.normal(size=(20, *shape))
    x = ag.Input("x", (2, *shape))
    with pytest.raises(ModelError, match="no form on s8 of "):
        quant.quantize(make(), samples)(x)
    net = quant.quantize(make(), samples, fallback=True)
    assert net(x).dtype.name == "f32" and net.float_ops
