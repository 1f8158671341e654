"""Functions of torch that are composed of a few others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..ir.build import apply
from ..ir.node import Value
from .arguments import Dims, TensorLike, as_value, axes_of, list_of, shape_error, torch_lacks
from .elementwise import (
    abs,
    atan2,
    cos,
    div,
    erf,
    exp,
    expm1,
    floor,
    gt,
    log,
    log1p,
    logical_not,
    logical_or,
    lt,
    neg,
    sin,
    sqrt,
    square,
    to,
    where,
)
from .shapes import permute, transpose

__all__ = [
    "acos",
    "acosh",
    "addcdiv",
    "addcmul",
    "all",
    "any",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "copysign",
    "cosh",
    "erfc",
    "exp2",
    "floor_divide",
    "fmod",
    "hypot",
    "lerp",
    "log2",
    "log10",
    "logaddexp",
    "movedim",
    "remainder",
    "sinh",
    "swapaxes",
    "tan",
    "trunc",
]


def ceil(input: TensorLike) -> Value:
    """The smallest integer that is at least the input."""
    return neg(floor(neg(input)))


def trunc(input: TensorLike) -> Value:
    """The input without its fraction, rounded towards 0."""
    x = as_value(input)
    return where(x < 0.0, neg(floor(neg(x))), floor(x))


def floor_divide(input: TensorLike, other: TensorLike) -> Value:
    """floor(input / other); floats only."""
    return floor(div(input, other))


def remainder(input: TensorLike, other: TensorLike) -> Value:
    """input - other * floor(input / other), with the sign of `other`; floats only."""
    x, y = as_value(input), as_value(other)
    return x - y * floor(x / y)


def fmod(input: TensorLike, other: TensorLike) -> Value:
    """input - other * trunc(input / other), with the sign of `input`; floats only."""
    x, y = as_value(input), as_value(other)
    return x - y * trunc(x / y)


def exp2(input: TensorLike) -> Value:
    """2 to the power of the input."""
    return exp(as_value(input) * math.log(2.0))


def log2(input: TensorLike) -> Value:
    """The logarithm to base 2."""
    return log(input) * (1.0 / math.log(2.0))


def log10(input: TensorLike) -> Value:
    """The logarithm to base 10."""
    return log(input) * (1.0 / math.log(10.0))


def tan(input: TensorLike) -> Value:
    """sin(input) / cos(input)."""
    return sin(input) / cos(input)


def atan(input: TensorLike) -> Value:
    """The angle whose tangent is the input, between -pi/2 and pi/2."""
    return atan2(input, 1.0)


def _cosine_of(sine: Value) -> Value:
    """sqrt(1 - sine^2) as a product of two roots, whose gradient at 1 and -1 is infinite and not NaN."""
    y: Value = sqrt(1.0 - sine) * sqrt(1.0 + sine)
    return y


def asin(input: TensorLike) -> Value:
    """The angle between -pi/2 and pi/2 whose sine is the input, a number from -1 to 1."""
    x = as_value(input)
    return atan2(x, _cosine_of(x))


def acos(input: TensorLike) -> Value:
    """The angle between 0 and pi whose cosine is the input, a number from -1 to 1."""
    x = as_value(input)
    return atan2(_cosine_of(x), x)


def sinh(input: TensorLike) -> Value:
    """(exp(input) - exp(-input)) / 2, accurate near 0 too."""
    x = as_value(input)
    return (expm1(x) - expm1(neg(x))) * 0.5


def cosh(input: TensorLike) -> Value:
    """(exp(input) + exp(-input)) / 2."""
    x = as_value(input)
    return (exp(x) + exp(neg(x))) * 0.5


def asinh(input: TensorLike) -> Value:
    """log(input + sqrt(input^2 + 1)), accurate near 0 too."""
    x = as_value(input)
    negative = x < 0.0
    size = where(negative, neg(x), x)  # |x|, with the gradient 1 at 0; the gradient of abs is 0 there
    result = log1p(size + square(size) / (1.0 + sqrt(square(size) + 1.0)))
    return where(negative, neg(result), result)


def acosh(input: TensorLike) -> Value:
    """log(input + sqrt(input^2 - 1)), of numbers of at least 1."""
    x = as_value(input)
    return log(x + sqrt(square(x) - 1.0))


def atanh(input: TensorLike) -> Value:
    """log((1 + input) / (1 - input)) / 2, of numbers between -1 and 1; accurate near 0 too."""
    x = as_value(input)
    return (log1p(x) - log1p(neg(x))) * 0.5


def erfc(input: TensorLike) -> Value:
    """1 - erf(input), with an absolute error of the order of 1e-7: small results lose digits that PyTorch's keep."""
    return 1.0 - erf(input)


def hypot(input: TensorLike, other: TensorLike) -> Value:
    """sqrt(input^2 + other^2)."""
    return sqrt(square(input) + square(other))


def copysign(input: TensorLike, other: TensorLike) -> Value:
    """|input| with the sign of `other`; -0.0 is negative."""
    size, sign = abs(input), as_value(other)
    negative = logical_or(lt(sign, 0.0), lt(div(1.0, sign), 0.0))
    return where(negative, neg(size), size)


def logaddexp(input: TensorLike, other: TensorLike) -> Value:
    """log(exp(input) + exp(other)) of finite numbers, without overflow."""
    x, y = as_value(input), as_value(other)
    difference = x - y
    greater = gt(difference, 0.0)  # both forms have the same derivatives where x = y
    return where(greater, x, y) + log1p(exp(where(greater, neg(difference), difference)))


def lerp(input: TensorLike, end: TensorLike, weight: TensorLike) -> Value:
    """input + weight * (end - input); the weight is a number or a value."""
    x = as_value(input)
    y: Value = x + (as_value(end) - x) * weight
    return y


def addcmul(input: TensorLike, tensor1: TensorLike, tensor2: TensorLike, *, value: float = 1.0) -> Value:
    """input + value * tensor1 * tensor2."""
    y: Value = as_value(input) + as_value(tensor1) * tensor2 * float(value)
    return y


def addcdiv(input: TensorLike, tensor1: TensorLike, tensor2: TensorLike, *, value: float = 1.0) -> Value:
    """input + value * tensor1 / tensor2."""
    y: Value = as_value(input) + as_value(tensor1) / tensor2 * float(value)
    return y


def _mask(input: Any) -> Value:
    x = as_value(input)
    return x if x.dtype.kind == "b" else to(x, "bool")


@torch_lacks(out=None)
def any(input: TensorLike, dim: Dims = None, keepdim: bool = False) -> Value:
    """Whether an element over the axes `dim` (all by default) is True, or a number other than 0."""
    mask = _mask(input)
    axes = axes_of("any", mask, dim)
    return gt(apply("sum_s32", to(mask, "s32"), axes=axes, keepdim=keepdim), 0)


@torch_lacks(out=None)
def all(input: TensorLike, dim: Dims = None, keepdim: bool = False) -> Value:
    """Whether all elements over the axes `dim` (all by default) are True, or numbers other than 0."""
    return logical_not(any(logical_not(_mask(input)), dim, keepdim))


def swapaxes(input: TensorLike, axis0: int, axis1: int) -> Value:
    """Two axes swapped; a view."""
    return transpose(input, axis0, axis1)


def movedim(input: TensorLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Value:
    """The axes `source` moved to the positions `destination`; the other axes keep their order. A view."""
    x, name = as_value(input), "movedim"
    given, places = (
        [d % x.ndim if -x.ndim <= d < x.ndim else x.ndim for d in list_of(name, x, what, dims)]
        for what, dims in (("source", source), ("destination", destination))
    )
    if len(given) != len(places) or len(set(given)) != len(given) or len(set(places)) != len(places):
        raise shape_error(name, [x], f"source={source!r} and destination={destination!r} do not match")
    if x.ndim in (*given, *places):
        raise shape_error(name, [x], f"source={source!r} or destination={destination!r} is out of range")
    others = [d for d in range(x.ndim) if d not in given]
    order = [given[places.index(k)] if k in places else others.pop(0) for k in range(x.ndim)]
    return permute(x, order)
