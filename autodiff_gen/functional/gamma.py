"""The logarithm of the gamma function and its derivative, for losses of distributions."""

from __future__ import annotations

import math

from ..autodiff import grad
from ..ir.node import Value
from .arguments import TensorLike, as_value, shape_error
from .elementwise import log, lt, neg, round, sin, where
from .reductions import sum

__all__ = ["digamma", "lgamma"]

SHIFT = 8  # Stirling's series is exact in float32 from here on
SERIES = (1 / 12, -1 / 360, 1 / 1260)  # Bernoulli numbers / (2k (2k - 1)): Abramowitz and Stegun 6.1.40


def lgamma(input: TensorLike) -> Value:
    """log |gamma(input)|, elementwise, of floats. From 8 on by Stirling's series; from 1/2 to 8 by the series at x + 8
    and gamma(x + 1) = x gamma(x); below 1/2 by gamma(x) gamma(1 - x) = pi / sin(pi x). Near the zeros at 1 and 2 only
    the absolute error is small."""
    x = as_value(input)
    if x.dtype.kind != "f":
        raise shape_error("lgamma", [x], f"the input must be a float, not {x.dtype}; convert with F.to first")
    reflects = lt(x, 0.5)
    v = where(reflects, 1.0 - x, x)
    small = lt(v, float(SHIFT))
    s = where(small, v + float(SHIFT), v)
    first = where(small, v, 1.0)
    product = first
    for k in range(1, SHIFT):
        product = product * (first + float(k))
    r = 1.0 / s
    q = r * r
    tail = r * (SERIES[0] + q * (SERIES[1] + q * SERIES[2]))
    value = (s - 0.5) * log(s) - s + 0.5 * math.log(2.0 * math.pi) + tail
    value = value - where(small, log(product), 0.0)
    distance = where(reflects, x - round(x), 0.5)  # from the nearest pole, exact
    sine = sin(math.pi * where(lt(distance, 0.0), neg(distance), distance))
    return where(reflects, math.log(math.pi) - log(sine) - value, value)


def digamma(input: TensorLike) -> Value:
    """The derivative of lgamma, elementwise."""
    x = as_value(input)
    return grad(sum(lgamma(x)), x)
