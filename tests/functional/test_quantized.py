"""Functions of quantised tensors against the numbers that the integers represent, in float64; then wrong arguments.
That C computes the same bits is tested for every op in test_ops_c.py and test_op_kernels.py."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rejections import all_rejected

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen.errors import ShapeError
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import Value
from autodiff_gen.ir.quantization import Quantization, fixed_point, requantized

X, RESULT = (0.05, -7), (0.11, 12)  # scale and zero point


def integers(rng: np.random.Generator, *shape: int) -> Any:
    """s8 with its extreme values."""
    q = rng.integers(-128, 128, shape)
    return np.where(rng.uniform(size=shape) < 0.1, rng.choice([-128, 127], shape), q).astype(np.int8)


def number(q: Any, of: tuple[float, int]) -> Any:
    return of[0] * (q.astype(np.float64) - of[1])


def quantised_input(name: str, q: Any, of: tuple[float, int]) -> tuple[Value, Value, Any]:
    """A float input, its quantised value, and the array for the input that gives q."""
    x = ag.Input(name, q.shape)
    return x, F.quantize(x, *of), number(q, of).astype(np.float32)


def check(
    y: Value, feeds: dict[Value, Any], want: Any, low: int = -128, high: int = 127, units: float = 0.51
) -> None:
    """The integers of y represent the numbers `want`, between the limits, up to the rounding of the multiplier."""
    (got,) = evaluate([y], feeds)
    of = y.type.quantization
    assert of is not None and got.dtype == np.int8
    exact = np.clip(want / of.scale + of.zero_point, low, high)
    assert np.max(np.abs(got - exact)) <= units
    assert np.ptp(got.astype(int)) > 20  # the limits do not hide everything


def product(kind: str, rng: np.random.Generator) -> tuple[Any, Any, Any, dict[str, Any]]:
    """Input, weights, scales and options."""
    if kind == "depthwise":
        return (
            integers(rng, 2, 6, 9, 7),
            integers(rng, 6, 1, 3, 5),
            6,
            {"groups": 6, "padding": (1, 2), "stride": 2},
        )
    if kind == "groups":
        return integers(rng, 1, 6, 5, 5), integers(rng, 4, 3, 3, 3), 4, {"groups": 2, "dilation": 2}
    return integers(rng, 1, 3, 8, 6), integers(rng, 5, 3, 3, 3), 5, {"padding": 1, "stride": (1, 2)}


@pytest.mark.torch
@pytest.mark.parametrize("limits", [(-128, 127), (-50, 60)])
@pytest.mark.parametrize("kind", ["conv", "groups", "depthwise"])
def test_convolution(kind: str, limits: tuple[int, int], rng: np.random.Generator) -> None:
    import torch

    q, w, out, options = product(kind, rng)
    scales = rng.uniform(0.001, 0.02, out)
    bias = rng.integers(-900, 900, out).astype(np.int32)
    x, of_x, array = quantised_input("x", q, X)
    y = F.quantized_conv2d(
        of_x, F.quantized_weight(w, scales), bias, *RESULT, **options, low=limits[0], high=limits[1]
    )
    each = scales[:, None, None, None]
    want = torch.nn.functional.conv2d(
        torch.tensor(number(q, X)), torch.tensor(each * w), torch.tensor(X[0] * scales * bias), **options
    )
    check(y, {x: array}, want.numpy(), *limits)


@pytest.mark.parametrize("scales", [0.01, np.array([0.01, 0.02, 0.003])])
def test_linear(scales: Any, rng: np.random.Generator) -> None:
    q, w = integers(rng, 9, 40), integers(rng, 3, 40)
    bias = rng.integers(-900, 900, 3).astype(np.int32)
    x, of_x, array = quantised_input("x", q, X)
    y = F.quantized_linear(of_x, F.quantized_weight(w, scales), bias, *RESULT)
    check(y, {x: array}, number(q, X) @ (w.T * scales) + X[0] * scales * bias)


@pytest.mark.parametrize(
    ("function", "meaning"),
    [(F.quantized_add, np.add), (F.quantized_sub, np.subtract), (F.quantized_mul, np.multiply)],
)
def test_of_two(function: Callable[..., Value], meaning: Any, rng: np.random.Generator) -> None:
    a, b = integers(rng, 4, 30), integers(rng, 30)
    x, of_a, array_a = quantised_input("x", a, X)
    z, of_b, array_b = quantised_input("z", b, (0.02, 30))
    exact = meaning(number(a, X), number(b, (0.02, 30)))
    check(function(of_a, of_b, *RESULT), {x: array_a, z: array_b}, exact)
    check(function(of_a, of_b, *RESULT, -20, 90), {x: array_a, z: array_b}, exact, -20, 90)


@pytest.mark.torch
def test_pooling(rng: np.random.Generator) -> None:
    import torch

    q = integers(rng, 2, 3, 7, 6)
    x, of_x, array = quantised_input("x", q, X)
    exact = torch.tensor(number(q, X))
    mean = torch.nn.functional.avg_pool2d(exact, (3, 2), 2, 1, count_include_pad=False)
    check(F.quantized_avg_pool2d(of_x, (3, 2), 2, 1), {x: array}, mean.numpy())
    check(
        F.quantized_max_pool2d(of_x, 3, 1, 1),
        {x: array},
        torch.nn.functional.max_pool2d(exact, 3, 1, 1).numpy(),
        units=1e-6,
    )


@pytest.mark.parametrize("dim", [-1, 1, 0])
@pytest.mark.parametrize("scale", [0.002, 0.05, 0.7])
def test_softmax(scale: float, dim: int, rng: np.random.Generator) -> None:
    q = integers(rng, 4, 5, 6)
    x, of_x, array = quantised_input("x", q, (scale, -7))
    power = np.exp(number(q - np.max(q, dim, keepdims=True).astype(int), (scale, 0)))
    y = F.quantized_softmax(of_x, dim)
    check(y, {x: array}, power / power.sum(dim, keepdims=True))
    assert y.type.quantization == Quantization((1 / 256,), -128)


@pytest.mark.parametrize(
    ("n", "scale", "want"),
    [(1, 0.1, 127), (2, 1e-30, 0), (256, 1e-9, -127), (4095, 0.1, -128), (3, 1e30, -43)],
)
def test_softmax_of_equal_elements(n: int, scale: float, want: int) -> None:
    x = ag.Input("x", (2, n))
    y = F.quantized_softmax(F.quantize(x, scale))
    (got,) = evaluate([y], {x: np.ones((2, n), np.float32)})
    assert (got == want).all()


def test_what_only_moves_elements_stays_quantised(rng: np.random.Generator) -> None:
    q = integers(rng, 2, 3, 4)
    x, of_x, array = quantised_input("x", q, X)
    y = F.cat([F.permute(of_x, (1, 0, 2)).reshape(6, 4), of_x.reshape(6, 4)[::2]])
    assert y.type.quantization == Quantization((X[0],), X[1])
    (got,) = evaluate([F.dequantize(y)], {x: array})
    want = np.concatenate([q.transpose(1, 0, 2).reshape(6, 4), q.reshape(6, 4)[::2]])
    np.testing.assert_allclose(got, number(want, X), rtol=1e-6)
    padded = F.pad(of_x, (1, 1), value=X[1])
    np.testing.assert_allclose(evaluate([F.dequantize(padded)], {x: array})[0][..., 0], 0.0)


def test_rounding_is_that_of_cmsis_nn() -> None:
    """Two roundings: the product's 31 bits, halves up; then the bits that the shift drops, halves away from 0."""
    half = 1 << 30
    assert [int(requantized(v, half, 0)) for v in (-3, -1, 0, 1, 3)] == [-1, 0, 0, 1, 2]
    assert [int(requantized(v, half, -1)) for v in (-10, -6, -2, 2, 6, 10)] == [-3, -2, -1, 1, 2, 3]
    assert int(requantized(-(1 << 31), 2**31 - 1, 0)) == -(2**31) + 1
    for ratio in (0.4, 1.0, 3.7, 2.0**-20 * 1.3, -0.7, -1.0 + 2.0**-40):
        multiplier, shift = fixed_point(ratio)
        assert 2**30 <= abs(multiplier) < 2**31
        assert multiplier * 2.0 ** (shift - 31) == pytest.approx(ratio, rel=2**-31)
    assert fixed_point(2.0**-40) == (0, 0)


def of_ones(shape: tuple[int, ...], scale: Any = 0.01) -> Value:
    return F.quantized_weight(np.ones(shape, np.int8), scale)


IMAGE = F.quantize(ag.Input("image", (1, 2, 4, 4)), *X)
REJECTED = [
    (lambda: F.quantize(ag.Input("x", (3,)), 0.0), "scale 0.0: scales must be finite and greater than 0"),
    (lambda: F.quantize(ag.Input("x", (3,)), -0.1), "scale -0.1: scales must be finite and greater than 0"),
    (lambda: F.quantize(ag.Input("x", (3,)), float("nan")), "scale nan: scales must be finite"),
    (lambda: F.quantize(ag.Input("x", (3,)), 0.1, 128), "zero_point 128 is not between -128 and 127"),
    (lambda: F.quantize(IMAGE, 0.1), "needs a float, not s8"),
    (lambda: F.dequantize(ag.Input("x", (3,), "s8")), "needs a quantised tensor, as F.quantize"),
    (lambda: F.quantized_weight(np.ones(3), 0.1), "the values must be int8, not float64"),
    (
        lambda: F.quantized_weight(np.ones((3, 2), np.int8), [0.1, 0.2]),
        "2 scales for the 3 elements along axis 0",
    ),
    (
        lambda: F.quantized_conv2d(IMAGE, of_ones((3, 2, 3)), None, *RESULT),
        "the weight must be [out, in / groups, kh",
    ),
    (
        lambda: F.quantized_conv2d(IMAGE, of_ones((3, 1, 3, 3)), None, *RESULT),
        "the weights must be [out, kh, kw, 2 / g",
    ),
    (
        lambda: F.quantized_conv2d(IMAGE, of_ones((3, 2, 3, 3)), np.ones(3), *RESULT),
        "the bias must be int32[3], not",
    ),
    (
        lambda: F.quantized_conv2d(
            IMAGE, F.quantized_weight(np.ones((3, 2, 1, 1), np.int8), [0.1, 0.2], 1), None, *RESULT
        ),
        "has scales along axis 1, not along axis 0",
    ),
    (
        lambda: F.quantized_conv2d(IMAGE, of_ones((3, 2, 1, 1)), None, *RESULT, low=5, high=5),
        "limits 5 and 5 must be integers that ascend",
    ),
    (
        lambda: F.quantized_conv2d(IMAGE, of_ones((3, 2, 1, 1)), np.full(3, 2**31 - 1, np.int32), *RESULT),
        "a sum may be 2147483915, which has more than 32 bits; use a larger scale of the result",
    ),
    (lambda: F.quantized_mul(IMAGE, IMAGE, 1e-9, 0), "which has more than 32 bits"),
    (lambda: F.quantized_mul(IMAGE, IMAGE, 1e-30, 0), "which has more than 32 bits"),
    (lambda: F.quantized_add(IMAGE, IMAGE, 1e-9, 0), "which has more than 32 bits"),
    (
        lambda: F.quantized_avg_pool2d(IMAGE, 3, 1, 2),
        "padding=(2, 2, 2, 2) is more than half of kernel_size=(3, 3)",
    ),
    (
        lambda: F.quantized_softmax(ag.Input("x", (2, 3))),
        "quantized_softmax(x: f32[2,3]): needs a quantised tensor",
    ),
    (lambda: F.quantized_softmax(IMAGE, 4), "quantized_softmax(s8[1,2,4,4]<0.05, zero -7>): dim=4"),
    (
        lambda: F.quantized_softmax(F.quantize(ag.Input("x", (2, 4096)), 0.1)),
        "rows of 4096 elements are longer than 4095",
    ),
    (
        lambda: F.relu(IMAGE),
        "needs a float, not s8; use F.dequantize first, or the functions F.quantized_... on s8",
    ),
    (lambda: IMAGE - 1.0, "cannot be combined with a value of dtype s8; use F.dequantize first"),
    (lambda: IMAGE * ag.Input("x", (1, 2, 4, 4)), "use F.dequantize first"),
    (lambda: F.clamp(IMAGE, 0, 6), "clamp(s8[1,2,4,4]<0.05, zero -7>): use F.dequantize first"),
    (lambda: IMAGE @ IMAGE, "needs floats; use F.dequantize first"),
    (lambda: F.quantize(ag.Input("x", (3,)), "0.1"), "quantize: scale='0.1' must be a number"),
    (
        lambda: F.quantize(ag.Input("x", (3,)), 1e-40),
        "scale 1e-40: scales must be finite and greater than 0, from",
    ),
    (lambda: F.quantize(ag.Input("x", (3,)), 0.1, 1.5), "quantize: zero_point=1.5 must be an integer"),
    (
        lambda: of_ones((3, 2), None),
        "quantized_weight: scales must be a number or one for each element along axis 0",
    ),
    (lambda: of_ones((3, 2), np.ones((3, 1))), "one for each element along axis 0, not float64[3, 1]"),
    (lambda: F.quantized_weight(np.ones(3, np.int8), 0.1, "x"), "the values have no axis 'x', only 1"),
    (
        lambda: F.quantized_conv2d(IMAGE, of_ones((2, 2, 1, 1)), None, *RESULT, groups=0),
        "groups=0 must be at least 1",
    ),
    (
        lambda: F.quantized_conv2d(IMAGE, of_ones((2, 2, 1, 1)), None, *RESULT, groups="2"),
        "groups='2' must be an integer",
    ),
    (
        lambda: F.quantized_conv2d(IMAGE, of_ones((2, 2, 1, 1)), [[1], 2], *RESULT),
        "the bias must be int32[2], not",
    ),
    (
        lambda: F.quantized_conv2d(IMAGE, of_ones((2, 2, 1, 1)), None, *RESULT, low="0"),
        "the limits '0' and 127 must be",
    ),
    (lambda: F.quantized_conv2d(IMAGE, None, None, *RESULT), "None cannot be an operand"),
    (
        lambda: F.quantized_conv2d(IMAGE, np.ones((2, 2, 1, 1), np.int8), None, *RESULT),
        "F.quantized_weight and",
    ),
    (lambda: F.quantized_conv2d(IMAGE, IMAGE, None, *RESULT), "the weight has the zero point -7, needs 0"),
    (
        lambda: F.quantize(ag.Input("x", (2,)), [1, 2], 3, axis=0),
        "zero_point=3 needs one scale, without axis",
    ),
    (
        lambda: F.quantized_linear(np.ones((2, 4)), of_ones((3, 4)), None, *RESULT),
        "quantized_linear(f32[2,4]): needs a q",
    ),
    (
        lambda: F.quantized_add(IMAGE, 1.0, *RESULT),
        "quantized_add(f32[]): needs a quantised tensor, as F.quantize",
    ),
    (
        lambda: F.quantized_add(IMAGE, of_ones((2, 4), [0.1, 0.2]), *RESULT),
        "has scales along axis 0, needs one scale",
    ),
    (
        lambda: F.quantized_mul(2, IMAGE, *RESULT),
        "quantized_mul(f32[]): needs a quantised tensor, as F.quantize",
    ),
    (
        lambda: F.quantized_mul(IMAGE, IMAGE, 0.1, -200),
        "quantized_mul: zero_point -200 is not between -128 and 127",
    ),
    (lambda: F.quantized_max_pool2d(3.0, 2), "quantized_max_pool2d(f32[]): needs a quantised tensor"),
    (
        lambda: F.cat([IMAGE, F.quantize(ag.Input("x", (1, 2, 4, 4)), 0.3)]),
        "points; give all the same, by F.quantize",
    ),
    (lambda: F.cat([ag.Input("x", (1, 2, 4, 4), "s8"), IMAGE]), "different scales or zero points"),
    (lambda: F.pad(IMAGE, (1, 1)), "fills with the integer 0, but 0 is -7 here: give value=-7"),
    (
        lambda: F.quantized_conv2d(
            IMAGE, F.quantized_weight(np.ones((2, 2, 1, 1), np.int8), [0.1, 0.2], axis=-3), None, *RESULT
        ),
        "has scales along axis 1, not along axis 0",
    ),
]


def test_rejected(subtests: pytest.Subtests) -> None:
    all_rejected(subtests, [(build, re.escape(message)) for build, message in REJECTED], ShapeError)
