"""Elementwise arithmetic, functions, comparisons, selection and conversions."""

from __future__ import annotations

import math
from typing import Any

from ..errors import ShapeError
from ..ir.build import apply, filled
from ..ir.node import OPS, Value
from ..ir.types import DType, conversion, plain
from ..ir.types import dtype as dtype_of
from ..ops.elementwise.arithmetic import power
from ..ops.support import broadcasting
from .arguments import TensorLike, as_value, shape_error, torch_lacks

__all__ = [
    "abs",
    "add",
    "atan2",
    "clamp",
    "cos",
    "detach",
    "div",
    "eq",
    "erf",
    "exp",
    "expm1",
    "floor",
    "ge",
    "gt",
    "le",
    "log",
    "log1p",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "lt",
    "masked_fill",
    "maximum",
    "minimum",
    "mul",
    "ne",
    "neg",
    "pow",
    "reciprocal",
    "relu",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sqrt",
    "square",
    "sub",
    "tanh",
    "to",
    "where",
]


@torch_lacks(alpha=1)
def add(input: TensorLike, other: TensorLike) -> Value:
    return apply("add", input, other)


@torch_lacks(alpha=1)
def sub(input: TensorLike, other: TensorLike) -> Value:
    return apply("sub", input, other)


def mul(input: TensorLike, other: TensorLike) -> Value:
    return apply("mul", input, other)


@torch_lacks(rounding_mode=None)
def div(input: TensorLike, other: TensorLike) -> Value:
    """input / other; floats only."""
    return apply("div", input, other)


def neg(input: TensorLike) -> Value:
    return apply("neg", input)


def square(input: TensorLike) -> Value:
    return apply("square", input)


def pow(input: TensorLike, exponent: TensorLike) -> Value:
    """input ** exponent; either may be a number. Constant exponents such as 2, 0.5 and -1 need no call of powf."""
    exponent = plain(exponent)
    if isinstance(exponent, int | float):
        return power(as_value(input), float(exponent))
    return apply("pow", input, exponent)


def exp(input: TensorLike) -> Value:
    return apply("exp", input)


def expm1(input: TensorLike) -> Value:
    """exp(input) - 1, accurate for small input."""
    return apply("expm1", input)


def log1p(input: TensorLike) -> Value:
    """log(1 + input), accurate for small input."""
    return apply("log1p", input)


def log(input: TensorLike) -> Value:
    return apply("log", input)


def sqrt(input: TensorLike) -> Value:
    return apply("sqrt", input)


def rsqrt(input: TensorLike) -> Value:
    """1 / sqrt(input)."""
    return apply("rsqrt", input)


def reciprocal(input: TensorLike) -> Value:
    """1 / input; floats only."""
    return apply("reciprocal", input)


def erf(input: TensorLike) -> Value:
    return apply("erf", input)


def floor(input: TensorLike) -> Value:
    return apply("floor", input)


@torch_lacks(decimals=0)
def round(input: TensorLike) -> Value:
    """The nearest integer, as a float; ties to even."""
    return apply("round", input)


def sign(input: TensorLike) -> Value:
    """-1, 0 or 1; 0 for NaN."""
    return apply("sign", input)


def sin(input: TensorLike) -> Value:
    return apply("sin", input)


def cos(input: TensorLike) -> Value:
    return apply("cos", input)


def atan2(input: TensorLike, other: TensorLike) -> Value:
    """The angle from the x axis, between -pi and pi, of the point with x = other and y = input."""
    return apply("atan2", input, other)


def tanh(input: TensorLike) -> Value:
    return apply("tanh", input)


def sigmoid(input: TensorLike) -> Value:
    return apply("sigmoid", input)


def relu(input: TensorLike, inplace: bool = False) -> Value:
    """max(input, 0). `inplace` is ignored: buffer assignment decides which values are updated in place."""
    return apply("relu", input)


def abs(input: TensorLike) -> Value:
    return apply("abs", input)


def maximum(input: TensorLike, other: TensorLike) -> Value:
    """The larger of two values, NaN if either is; where they are equal, each gets half of the gradient."""
    return apply("maximum", input, other)


def minimum(input: TensorLike, other: TensorLike) -> Value:
    """The smaller of two values, NaN if either is; where they are equal, each gets half of the gradient."""
    return apply("minimum", input, other)


def clamp(input: TensorLike, min: TensorLike | None = None, max: TensorLike | None = None) -> Value:
    """input between min and max, which are numbers, tensors that broadcast, or None; max where min > max.

    The gradient of input is 1 between the limits and 0 beyond them. At a limit that is a number it is 0. At a limit
    that is a tensor, input and limit get half each. PyTorch does the same from 2.14 on; before, input got all of it.
    """
    x, min, max = as_value(input), plain(min), plain(max)
    if x.type.quantization is not None:
        raise shape_error("clamp", [x], conversion(x.type))
    if min is None and max is None:
        raise shape_error("clamp", [x], "min or max must be given")
    for name, bound in (("min", min), ("max", max)):
        if isinstance(bound, bool | str):
            raise shape_error("clamp", [x], f"{name}={bound!r} must be a number or a tensor")
    if x.dtype.kind != "f" or not (
        isinstance(min, int | float | None) and isinstance(max, int | float | None)
    ):
        return _clamp_to_tensors(x, min, max)
    if min != min or max != max:
        return filled(math.nan, x.type)
    if min is not None and max is not None and min > max:  # NaN stays NaN
        return apply("where", apply("ne", x, x), x, max)
    low, high = -math.inf if min is None else float(min), math.inf if max is None else float(max)
    if high == math.inf:
        return relu(x) if low == 0 else apply("where", x <= low, low, x)
    if low == -math.inf:
        return apply("where", x >= high, high, x)
    return apply("hardtanh", x, min_val=low, max_val=high)


def _clamp_to_tensors(x: Value, min: Any, max: Any) -> Value:
    """clamp with a limit that is a tensor: the maximum with min, then the minimum with max; NaN in a limit is the
    result."""
    low, high = (b if b is None or isinstance(b, int | float) else as_value(b) for b in (min, max))
    values = [v for v in (x, low, high) if isinstance(v, Value)]
    try:
        broadcasting(*(v.type for v in values))
    except ShapeError as error:
        raise shape_error("clamp", values, str(error)) from None
    if x.dtype.kind != "f":  # no gradient
        y = x if low is None else apply("where", x < low, low, x)
        return y if high is None else apply("where", y > high, high, y)
    y = x if low is None else maximum(x, low)
    y = y if high is None else minimum(y, high)
    if low is None or high is None:
        return y
    # Where both limits are equal, each element belongs to one of the three values: no gradient is divided.
    alone = apply("where", x < low, low, apply("where", x > high, high, x))
    return apply("where", apply("eq", low, high), alone, y)


def eq(input: TensorLike, other: TensorLike) -> Value:
    return apply("eq", input, other)


def ne(input: TensorLike, other: TensorLike) -> Value:
    return apply("ne", input, other)


def lt(input: TensorLike, other: TensorLike) -> Value:
    return apply("lt", input, other)


def le(input: TensorLike, other: TensorLike) -> Value:
    return apply("le", input, other)


def gt(input: TensorLike, other: TensorLike) -> Value:
    return apply("gt", input, other)


def ge(input: TensorLike, other: TensorLike) -> Value:
    return apply("ge", input, other)


def logical_and(input: TensorLike, other: TensorLike) -> Value:
    return apply("logical_and", input, other)


def logical_or(input: TensorLike, other: TensorLike) -> Value:
    return apply("logical_or", input, other)


def logical_not(input: TensorLike) -> Value:
    return apply("logical_not", input)


def logical_xor(input: TensorLike, other: TensorLike) -> Value:
    return logical_and(logical_or(input, other), logical_not(logical_and(input, other)))


def masked_fill(input: TensorLike, mask: TensorLike, value: TensorLike) -> Value:
    """The number `value` where the bool mask is True, input elsewhere; the mask broadcasts to the input."""
    x, m = as_value(input), as_value(mask)
    y = apply("where", m, value, x)
    if y.shape != x.shape:
        raise shape_error("masked_fill", [x, m], "the mask must broadcast to the input")
    return y


def where(condition: TensorLike, input: TensorLike, other: TensorLike) -> Value:
    """input where the bool mask `condition` is True, other elsewhere; all shapes broadcast."""
    return apply("where", condition, input, other)


def to(input: TensorLike, dtype: str | DType) -> Value:
    """input converted to another dtype ("f32", "s32", "s8", "u8", "bool"); a float is truncated to an integer."""
    x, target = as_value(input), dtype_of(dtype)
    if x.dtype is target:
        return x
    if f"to_{target.name}" not in OPS:
        raise shape_error("to", [x], f"there is no conversion to {target}")
    return apply(f"to_{target.name}", x)


def detach(input: TensorLike) -> Value:
    """The same values, through which no gradient flows."""
    x = as_value(input)
    return apply("detach", x) if x.dtype.kind == "f" else x
