"""Gradients of quantised functions, with respect to the real numbers that integers represent, against PyTorch: those of
the same function of real numbers, where the result is between its limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, quant
from autodiff_gen.autodiff import grad
from autodiff_gen.errors import GraphError
from autodiff_gen.ir.build import apply
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import Value, topological

OF_X, OF_Y, LOW, HIGH = (0.05, -7), (0.2, 12), -30, 45

Function = Callable[..., Value]


def real(name: str, *shape: int, seed: int = 1) -> tuple[Value, Any]:
    """A float input, and numbers; some are beyond the range of OF_X."""
    rng = np.random.default_rng([seed, *name.encode()])
    return ag.Input(name, shape), rng.uniform(-7.0, 7.5, shape).astype(np.float32)


def weights(*shape: int) -> tuple[Value, Any, Any]:
    """A float input with numbers that s8 represents exactly, and a scale for each output channel, one of them tiny."""
    rng = np.random.default_rng(3)
    scales = rng.uniform(0.005, 0.02, shape[0])
    scales[-1] = 1e-12
    integers = rng.integers(-126, 127, shape)
    numbers = (integers * scales.reshape(-1, *(1,) * (len(shape) - 1))).astype(np.float32)
    return ag.Input("w", shape), numbers, scales


class Rounded(torch.autograd.Function):
    """The numbers that integers with OF_X represent; gradients pass where the nearest are between -128 and 127."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        scale, zero = OF_X
        q = torch.round(x.to(torch.float32) * np.float32(1 / scale)) + zero
        ctx.inside = (q >= -128) & (q <= 127)
        return (q.clamp(-128, 127) - zero).to(x.dtype) * scale

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        return dy * ctx.inside


def check(y: Value, twin: Any, given: dict[Value, Any], *rounded: Value) -> None:
    """The gradients of sum(dy * real numbers of y + tanh of them) with respect to all inputs. twin: the function of
    torch tensors, one for each input; some are rounded first."""
    number = F.dequantize(y)
    dy = np.random.default_rng(2).uniform(0.5, 1.5, y.shape)
    inputs = list(given)
    got = evaluate([y, *grad(F.sum(number * dy) + F.sum(F.tanh(number)), inputs)], given)
    integers, got = got[0].astype(int), got[1:]
    inside = (integers > LOW) & (integers < HIGH)
    assert 0.05 < inside.mean() < 1
    of = y.type.quantization
    assert of is not None
    slope = dy + 1.0 - np.tanh((integers - of.zero_point) * of.scale) ** 2  # at the rounded numbers
    tensors = [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in given.values()]
    seen = [Rounded.apply(t) if v in rounded else t for v, t in zip(inputs, tensors, strict=True)]
    (twin(*seen) * torch.tensor(inside * slope)).sum().backward()
    for v, a, t in zip(inputs, got, tensors, strict=True):
        assert t.grad is not None
        want = t.grad.numpy()
        assert np.abs(want).max() > 0.01
        np.testing.assert_allclose(a, want, rtol=2e-5, atol=2e-5 * np.abs(want).max(), err_msg=v.name or "")


def quantised(v: Value) -> Value:
    return F.quantize(v, *OF_X)


@pytest.mark.parametrize(
    ("x_shape", "w_shape", "options"),
    [
        ((2, 3, 5, 6), (4, 3, 3, 2), {"padding": (1, 0), "stride": (2, 1)}),
        ((1, 4, 5, 5), (6, 2, 3, 3), {"groups": 2, "dilation": 2, "padding": 2}),
        ((2, 9, 6, 5), (9, 1, 3, 3), {"groups": 9, "stride": 2, "padding": 1}),
        ((1, 12, 3, 3), (5, 12, 1, 1), {}),
    ],
)
def test_convolutions(x_shape: Any, w_shape: Any, options: dict[str, Any]) -> None:
    (x, of_x), (w, of_w, scales), (b, of_b) = real("x", *x_shape), weights(*w_shape), real("b", w_shape[0])
    y = F.quantized_conv2d(
        quantised(x), F.quantize(w, scales, axis=0), b, *OF_Y, **options, low=LOW, high=HIGH
    )
    twin = lambda x, w, b: torch.nn.functional.conv2d(x, w, b, **options)
    check(y, twin, {x: of_x, w: of_w, b: of_b}, x)


def test_linear() -> None:
    (x, of_x), (w, of_w, scales), (b, of_b) = real("x", 3, 20), weights(7, 20), real("b", 7)
    y = F.quantized_linear(quantised(x), F.quantize(w, scales, axis=0), b, *OF_Y, low=LOW, high=HIGH)
    check(y, torch.nn.functional.linear, {x: of_x, w: of_w, b: of_b}, x)


@pytest.mark.parametrize("shape", [(2, 3, 4), (4,), (3, 1)])
@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_two_tensors(name: str, shape: tuple[int, ...]) -> None:
    (a, of_a), (b, of_b) = real("a", 2, 3, 4), real("b", *shape)
    y = getattr(F, f"quantized_{name}")(quantised(a), quantised(b), *OF_Y, LOW, HIGH)
    check(y, getattr(torch, name), {a: of_a, b: of_b}, a, b)


@pytest.mark.parametrize("name", ["avg", "max"])
@pytest.mark.parametrize("activation", [None, F.relu, lambda v: F.clamp(v, -9.0, 2.0)])
def test_limits_that_limit_no_s8_stop_no_gradient(name: str, activation: Any) -> None:
    """A mean and a maximum of 8-bit integers are such integers. Where one is -128 or 127, and where an activation with
    one limit has the other end of the range, nothing was limited."""
    low, high = (OF_X[0] * (q - OF_X[1]) for q in (-128, 127))
    numbers = np.random.default_rng(4).uniform(low, high, (2, 3, 6, 4))
    numbers = np.where(numbers > 2.5, high, np.where(numbers < -2.5, low, numbers)).astype(np.float32)

    class Net(nn.Module):
        def forward(self, x: Value) -> Value:
            y = getattr(F, f"{name}_pool2d")(x, (1, 2))
            return y if activation is None else activation(y)

    x = ag.Input("x", numbers.shape)
    y = quant.quantize(Net(), numbers).quantized(x)
    of = y.type.quantization
    assert of is not None and (np.float32(of.scale), of.zero_point) == (np.float32(OF_X[0]), OF_X[1])
    integers, got = evaluate([y, grad(F.sum(F.dequantize(y)), x)], {x: numbers})
    assert activation is not None or min((integers == q).mean() for q in (-128, 127)) > 0.03
    given = torch.tensor(numbers, dtype=torch.float64, requires_grad=True)
    pooled = getattr(torch.nn.functional, f"{name}_pool2d")(Rounded.apply(given), (1, 2))
    limits = {None: (-99.0, 99.0), F.relu: (0.0, 99.0)}.get(activation, (-99.0, 2.0))
    torch.where((pooled > limits[0]) & (pooled < limits[1]), pooled, 0.0).sum().backward()
    assert given.grad is not None
    np.testing.assert_allclose(got, given.grad.numpy(), atol=1e-6)


@pytest.mark.parametrize(("kernel", "stride", "padding"), [(2, 2, 0), (3, 2, 1), ((3, 2), (1, 2), (1, 1))])
@pytest.mark.parametrize("name", ["avg", "max"])
def test_pooling(name: str, kernel: Any, stride: Any, padding: Any) -> None:
    x, of_x = real("x", 2, 3, 6, 5)
    y = getattr(F, f"quantized_{name}_pool2d")(quantised(x), kernel, stride, padding, LOW, HIGH)
    options = {"count_include_pad": False} if name == "avg" else {}
    twin = lambda v: getattr(torch.nn.functional, f"{name}_pool2d")(v, kernel, stride, padding, **options)
    check(y, twin, {x: of_x}, x)


@pytest.mark.parametrize("dim", [-1, 1])
def test_softmax(dim: int) -> None:
    """The gradient of softmax at the numbers that the rounded result represents; only its errors separate them from
    that at the numbers of x."""
    x, of_x = real("x", 3, 6, 5)
    y = F.quantized_softmax(quantised(x), dim)
    dy = np.random.default_rng(2).uniform(-1.0, 1.0, y.shape)
    number, got = evaluate([F.dequantize(y), grad(F.sum(F.dequantize(y) * dy), x)], {x: of_x})
    given = torch.tensor(of_x, dtype=torch.float64, requires_grad=True)
    seen, slope = Rounded.apply(given), torch.tensor(dy)
    torch.nn.functional.softmax(seen, dim).backward(slope)
    assert given.grad is not None and given.grad.abs().max() > 0.1
    np.testing.assert_allclose(got, given.grad.numpy(), atol=3 / 256)
    result = torch.tensor(number, dtype=torch.float64)
    exact = torch.ops.aten._softmax_backward_data(slope, result, dim, torch.float64).numpy()
    q = np.rint(of_x / OF_X[0]) + OF_X[1]
    np.testing.assert_allclose(got, np.where((q >= -128) & (q <= 127), exact, 0.0), atol=1e-6)


def test_clamp() -> None:
    (a, of_a), (b, of_b) = real("a", 4, 9), real("b", 4, 9)
    q = apply("clamp_s8", quantised(a), low=-40, high=30)
    y = F.quantized_add(q, quantised(b), *OF_Y, LOW, HIGH)

    def twin(a: Any, b: Any) -> Any:
        return torch.where((a > OF_X[0] * (-39.5 - OF_X[1])) & (a < OF_X[0] * (29.5 - OF_X[1])), a, 0.0) + b

    check(y, twin, {a: of_a, b: of_b}, a, b)


def test_views_parts_and_padding() -> None:
    (a, of_a), (b, of_b) = real("a", 2, 3, 4), real("b", 2, 2, 4)
    joined = F.cat([quantised(a), quantised(b)], 1).permute(0, 2, 1).reshape(2, 20)
    y = F.quantized_add(
        F.pad(joined, (1, 1), value=OF_X[1]), F.pad(joined, (0, 2), value=OF_X[1]), *OF_Y, LOW, HIGH
    )

    def twin(a: Any, b: Any) -> Any:
        joined = torch.cat([a, b], 1).permute(0, 2, 1).reshape(2, 20)
        pad = torch.nn.functional.pad
        return pad(joined, (1, 1)) + pad(joined, (0, 2))

    check(y, twin, {a: of_a, b: of_b}, a, b)


def test_weights_without_scales_are_named() -> None:
    x = ag.Input("x", (1, 4))
    w = ag.Input("w", (3, 4), dtype="s8")
    numbers = {"x_zero": 0, "quantization": quantised(x).type.quantization, "low": LOW, "high": HIGH}
    parts = [np.ones(3, dtype) for dtype in (np.int32, np.int32, np.int8)]
    y = apply("dense_s8", quantised(x), w, *parts, per_channel=False, **numbers)
    with pytest.raises(
        GraphError, match=r"no gradient passes the weights <w: s8.3,4.>, whose scales are not known"
    ):
        grad(F.sum(F.dequantize(y)), x)


class Elementwise(nn.Module):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Value) -> Value:
        return self.function(x)


@pytest.mark.parametrize(
    ("function", "twin", "calibration"),
    [
        (F.hardswish, torch.nn.functional.hardswish, np.linspace(-4, 4, 9)),
        (lambda x: x * F.sigmoid(0.5 * x), lambda x: x * torch.sigmoid(0.5 * x), np.linspace(-3, 5, 9)),
        (F.cos, torch.cos, np.array([-2, 2])),  # results above 0 are beyond the range
    ],
)
def test_tables_have_the_derivative_of_their_function(
    function: Function, twin: Any, calibration: Any
) -> None:
    net = quant.quantize(Elementwise(function), calibration.astype(np.float32).reshape(-1, 1))
    x, numbers = ag.Input("x", (40, 1)), np.linspace(-1.9, 1.9, 40, dtype=np.float32).reshape(-1, 1)
    y, dy = net.quantized(x), np.random.default_rng(2).uniform(0.5, 1.5, (40, 1))
    of = y.type.quantization
    integers, got = evaluate([y, *grad(F.sum(F.dequantize(y) * dy), [x])], {x: numbers})
    (rounded,) = evaluate(
        [F.dequantize(next(n for n in topological([y]) if n.op.name == "quantize").results[0])], {x: numbers}
    )
    at = torch.tensor(rounded, dtype=torch.float64, requires_grad=True)
    exact = twin(at)
    exact.backward(torch.tensor(dy))
    inside = np.abs(exact.detach().numpy() / of.scale + of.zero_point + 0.5) < 128
    assert at.grad is not None and inside.mean() > 0.1 and np.isin(integers[~inside], (-128, 127)).all()
    np.testing.assert_allclose(got, at.grad.numpy() * inside, rtol=1e-5, atol=1e-6)


def test_a_table_alone_has_no_gradient() -> None:
    x = ag.Input("x", 4)
    of = quantised(x).type.quantization
    table = F.quantized_weight(np.arange(-128, 128).astype(np.int8), 0.1)
    y = apply("lookup_s8", table, F.to(quantised(x), "s32") + 128, quantization=of)
    assert not evaluate([grad(F.sum(F.dequantize(y)), x)], {x: np.ones(4, np.float32)})[0].any()
