"""Networks that the front end of quantised networks rejects: one line with the fault, its place and the fix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, quant
from autodiff_gen.errors import AutodiffError
from autodiff_gen.ir.node import Value

SAMPLES = np.random.default_rng(1).normal(size=(5, 3, 8, 8))
SHAPE = (2, 3, 8, 8)


def message_of(build: Callable[[], Any]) -> str:
    with pytest.raises(AutodiffError) as error:
        build()
    assert "\n" not in str(error.value)
    return str(error.value)


# Loaded networks: `fc` and `more` change the last layer and the arrays of a network; None leaves one out


def network(fc: dict[str, Any], *layers: dict[str, Any], **more: Any) -> dict[str, Any]:
    last = {"name": "fc", "op": "linear", "scale": 0.1, "zero_point": 4, **fc}
    first = {"name": "in", "op": "quantize", "scale": 0.05, "zero_point": -3}
    weight = np.arange(-6, 6, dtype=np.int8).reshape(3, 4)
    given = {"layers": [first, last, *layers], "fc.weight": weight, "fc.weight_scales": np.ones(3), **more}
    return {k: v for k, v in given.items() if v is not None}


def after(op: str, **options: Any) -> dict[str, Any]:
    """A network with one more layer, which reads the first."""
    return network({}, {"name": "a", "op": op, "inputs": ["in"], **options})


LOADED = [
    (3, "quant.load: give a path or a dict of arrays, not int"),
    ("nowhere.npz", "nowhere.npz: cannot be read: No such file or directory"),
    (__file__, "is no complete file of np.savez: truncated, or another format"),
    ({"fc.weight": 1}, "the dict has no entry 'layers': it is no quantised network"),
    (network({}, layers="["), "the dict: the entry 'layers': its JSON is damaged"),
    (network({}, layers=[]), "the dict: the entry 'layers' must be a list of objects, one for each layer"),
    (network({}, layers='["fc"]'), "the dict: the entry 'layers' must be a list of objects"),
    (network({}, layers=[{"op": "flatten"}]), "layer 1 of 'layers': the key 'name' is missing"),
    (network({}, {"name": "a"}), "layer 'a': the key 'op' is missing"),
    (
        network({}, layers=[{"name": "a", "kind": "conv"}]),
        "the dict: the entry or array 'x_scale' is missing",
    ),
    (network({"name": 3}), "layer 3: the name must be a string of at least one character"),
    (network({"name": "in"}), "two layers are called 'in'"),
    (network({"op": "conv3d"}), "layer 'fc': no quantised op 'conv3d'; there are quantize, conv2d, linear"),
    (network({"op": ["linear"]}), "layer 'fc': no quantised op ['linear']; there are"),
    (network({"stride": 2}), "layer 'fc': linear takes no 'stride'; it takes scale, zero_point, low, high"),
    (after("flatten", dim=2), "layer 'a': flatten takes no 'dim'; it takes nothing"),
    (after("softmax", scale=0.1), "layer 'a': softmax takes no 'scale'; it takes dim"),
    (after("add"), "layer 'a': add needs the scale of its result"),
    (after("add", scale=0.1), "layer 'a': 1 inputs are given, add has 2"),
    (network({"inputs": ["in", "in"]}), "layer 'fc': 2 inputs are given, linear has 1"),
    (network({"inputs": "in"}), "layer 'fc': inputs must be a list of names, not 'in'"),
    (network({"inputs": ["out"]}), "layer 'fc' reads 'out', which is no earlier layer"),
    (network({}, **{"fc.weight": None}), "layer 'fc': the array 'fc.weight' is missing"),
    (network({}, **{"fc.weight_scales": None}), "layer 'fc': the array 'fc.weight_scales' is missing"),
    (
        network({}, **{"fc.biases": 1}),
        "no layer reads the array 'fc.biases'; conv2d and linear read <layer>.weight,",
    ),
    (network({"scale": "0.1"}), "layer 'fc': linear: scale='0.1' must be a number"),
    (network({"scale": 0}), "layer 'fc': linear: scale 0.0: scales must be finite and greater than 0"),
    (network({"zero_point": 1.5}), "layer 'fc': linear: zero_point=1.5 must be an integer"),
    (network({"zero_point": 500}), "layer 'fc': linear: zero_point 500 is not between -128 and 127"),
    (network({"low": None}), "layer 'fc': linear: the limits None and 127 must be integers"),
    (
        network({}, **{"fc.weight": np.ones((3, 4))}),
        "layer 'fc': QuantizedParameter: the values must be int8, not",
    ),
    (
        network({}, **{"fc.weight_scales": np.ones(2)}),
        "layer 'fc': QuantizedParameter: 2 scales for the 3 elements",
    ),
    (
        network({}, **{"fc.weight_scales": np.array("a")}),
        "layer 'fc': QuantizedParameter: scales must be a number",
    ),
    (
        network({}, **{"fc.weight_scales": np.array([1, np.nan, 1])}),
        "layer 'fc': QuantizedParameter: scale nan: ",
    ),
    (
        network({}, **{"fc.bias": np.zeros(2, np.int32)}),
        "layer 'fc': the bias must be int32[3], not int32[2]",
    ),
    (network({}, **{"fc.bias": [[1], 2, 3]}), "layer 'fc': the bias must be int32[3], not object[]"),
]
CALLED = [
    (network({}, **{"fc.weight": np.ones((3, 5), np.int8)}), "layer 'fc': quantized_linear(s8[1,4]<0.05, zero -3>,"),
    (after("cat", inputs=["in", "fc"]), "points; give all the same, by F.quantize(F.dequantize(x), ...)"),
    (after("softmax", dim="x"), "layer 'a': quantized_softmax(s8[1,4]<0.05, zero -3>): dim must be one integer, not"),
    (after("avg_pool2d"), "layer 'a': quantized_avg_pool2d(s8[1,4]<0.05, zero -3>): the input must be [N, C, H, W]"),
    (after("quantize", scale=0.3), "layer 'a': the input is quantised as <0.05, zero -3>, the layer as <0.3, zero 0>"),
]  # fmt: skip


def test_rejected_networks(subtests: pytest.Subtests) -> None:
    for source, message in LOADED:
        with subtests.test(message):
            assert message in message_of(lambda source=source: quant.load(source))


def test_rejected_layers(subtests: pytest.Subtests) -> None:
    for source, message in CALLED:
        with subtests.test(message):
            net = quant.load(source)
            assert message in message_of(lambda net=net: net(ag.Input("x", (1, 4))))


# Quantisation after training


class Network(nn.Module):
    """A convolution in a module whose forward is `compute(convolution, input)`."""

    def __init__(self, compute: Callable[[nn.Module, Value], Any]) -> None:
        super().__init__()
        self.conv, self.compute = nn.Conv2d(3, 3, 1), compute

    def forward(self, x: Value) -> Any:
        return self.compute(self.conv, x)


class Pair(nn.Module):
    def forward(self, a: Value, b: Value) -> Value:
        return a + b


def quantised(
    compute: Callable[[nn.Module, Value], Any], data: Any = SAMPLES, **options: Any
) -> quant.Quantized:
    return quant.quantize(Network(compute), data, **options)


def conv(layer: nn.Module, x: Value) -> Any:
    return layer(x)


QUANTIZED = [
    (
        lambda: quant.quantize(abs, SAMPLES),
        "the first argument must be an object of nn.Module, not builtin_function",
    ),
    (lambda: quant.quantize(nn.ReLU, SAMPLES), "an object of nn.Module, not the class ReLU: call it"),
    (lambda: quant.quantize(Pair(), SAMPLES), "quantize: Pair must take one tensor"),
    (lambda: quantised(lambda conv, x: (x, x)), "quantize: Network must return one tensor, not tuple"),
    (lambda: quantised(lambda conv, x: conv.weight), "the result of Network does not depend on its input"),
    (
        lambda: quantised(lambda conv, x: x + ag.Input("y", (3, 8, 8))),
        "Network reads 'y'; it may read only its own input",
    ),
    (
        lambda: quantised(conv, method="median"),
        "quantize: no method 'median'; there are minmax, percentile, mse",
    ),
    (
        lambda: quantised(conv, method=["mse"]),
        "quantize: no method ['mse']; there are minmax, percentile, mse",
    ),
    (
        lambda: quantised(conv, "words"),
        "the calibration data must be an array of numbers [samples, ...], not str of <U5",
    ),
    (
        lambda: quantised(conv, [[1, 2], [3]]),
        "the calibration data must be an array of numbers [samples, ...], not list",
    ),
    (lambda: quantised(conv, SAMPLES + 1j), "array of numbers [samples, ...], not ndarray of complex128"),
    (lambda: quantised(conv, SAMPLES[:0]), "the calibration data must be [samples, ...], not [0, 3, 8, 8]"),
    (
        lambda: quantised(conv, SAMPLES[:, :0]),
        "the calibration data must be [samples, ...], not [5, 0, 8, 8]",
    ),
    (lambda: quantised(conv, 0.5), "the calibration data must be [samples, ...], not []"),
    (
        lambda: quantised(conv, 0 * SAMPLES),
        "the calibration data is constant, 0: give samples as the network will",
    ),
    (lambda: quantised(conv, SAMPLES * np.nan), "the calibration data must be finite"),
    (lambda: quantised(conv, SAMPLES * 1e300), "the calibration data must be finite"),
    (
        lambda: quantised(conv, SAMPLES[:, :2]),
        "the calibration data's samples of shape [2, 8, 8]: conv2d(x: f32[5,2,8,8], conv.weight: f32[3,3,1,1])",
    ),
]
CONVERTED = [
    (
        lambda conv, x: F.log(conv(x)),
        "quantize: log of the outermost module is not finite on the calibration data; leave",
    ),
    (
        lambda conv, x: conv(x) / 0.0,
        "quantize: div of the outermost module is not finite on the calibration data",
    ),
    (lambda conv, x: F.exp(1e4 * conv(x)), "quantize: exp of the outermost module is not finite"),
    (
        lambda conv, x: conv(x) / (x * x + 1),
        "quantize: no form on s8 of div of the outermost module; leave the layer out",
    ),
]


@pytest.mark.parametrize(("build", "message"), QUANTIZED)
def test_rejected_arguments(build: Callable[[], Any], message: str) -> None:
    assert message in message_of(build)


@pytest.mark.parametrize(("compute", "message"), CONVERTED)
def test_rejected_ops(compute: Any, message: str) -> None:
    assert message in message_of(lambda: quantised(compute)(ag.Input("x", SHAPE)))


NET = quantised(conv)
USED = [
    (lambda: NET(ag.Input("x", (2, 3, 7, 7))), "has samples of shape [3, 8, 8], the input is f32[2,3,7,7]"),
    (lambda: NET(None), "None cannot be an operand"),
    (
        lambda: quant.quantize(nn.Sequential(NET, nn.ReLU()), SAMPLES)(ag.Input("x", SHAPE)),
        "is quantised already",
    ),
    (lambda: NET.report("words"), "report: x must be an array of numbers [samples, ...], not str of <U5"),
    (lambda: NET.report(SAMPLES[:0]), "report: x must be [samples, ...], not [0, 3, 8, 8]"),
    (lambda: NET.report(SAMPLES[0]), "report: x must have samples of shape [3, 8, 8], as the calibration"),
    (
        lambda: NET.report(SAMPLES, [1, 2]),
        "report: labels must be 5 class numbers, one for each sample, not int64[2]",
    ),
    (
        lambda: NET.report(SAMPLES, 5 * ["a"]),
        "report: labels must be 5 class numbers, one for each sample, not <U1[5]",
    ),
]


@pytest.mark.parametrize(("build", "message"), USED)
def test_rejected_uses(build: Callable[[], Any], message: str) -> None:
    assert message in message_of(build)


def test_an_infinite_mask_is_computed_in_float() -> None:
    """With fallback only values that are read as s8 need a finite range."""
    mask = np.where(np.eye(8) > 0, -np.inf, 0).astype(np.float32)
    net = quantised(lambda conv, x: F.softmax(conv(x) + mask, 3), fallback=True)
    net(ag.Input("x", SHAPE))
    assert "add" in net.float_ops


def test_the_result_before_it_is_dequantised() -> None:
    x = ag.Input("x", SHAPE)
    integers, y = NET.quantized(x), NET(x)
    assert integers.dtype.name == "s8" and integers.type.quantization is not None
    assert integers.shape == y.shape and NET(F.quantize(x, 0.02)).shape == y.shape
