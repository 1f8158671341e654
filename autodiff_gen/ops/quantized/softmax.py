"""Softmax of quantised tensors along their last axis, with the fixed-point arithmetic of CMSIS-NN, which is gemmlowp's:
equal to the last bit in NumPy and on every core. The result has the scale 1/256 and the zero point -128."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...ir.build import apply, constant
from ...ir.kernel_call import KernelCall, Operand, Result
from ...ir.node import Sample, Value, define
from ...ir.op_kinds import Attrs, KernelOp, Tile
from ...ir.quantization import HIGH, LOW, Quantization, divided, fixed_point, high_word
from ...ir.strides import Strided
from ...ir.types import Dim, Type, s8
from ..movement.indexing import blocks
from ..support import by_operand
from .limits import is_s8

PROBABILITIES = Quantization((1 / 256,), LOW)
LARGEST_ROW = 4095  # elements whose exponentials add up to less than 2^31
_INTEGER_BITS, _FRACTION_BITS = 5, 26  # of exponents

# exp(-1/4), exp(-1/2), exp(-1), ... exp(-16), as fractions of 2^31
_POWERS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)


def softmax_s8(scale: float) -> dict[str, int]:
    """The attributes for an operand with this scale, limited to the range in which the result depends on it."""
    multiplier, shift = fixed_point(min(max(scale, 2.0**-_FRACTION_BITS), 15.0) * 2**_FRACTION_BITS)
    least = -math.floor((2**_INTEGER_BITS - 1) * 2.0 ** (_FRACTION_BITS - shift))
    return {"multiplier": multiplier, "shift": shift, "least": least}


def _type(x: Type, *, multiplier: int, shift: int, least: int) -> Type:
    is_s8(x)
    if not x.shape or isinstance(x.shape[-1], Dim):
        raise ShapeError("needs a last axis of a fixed extent")
    blocks(x.shape, len(x.shape) - 1)
    if x.shape[-1] > LARGEST_ROW:
        raise ShapeError(f"rows of {x.shape[-1]} elements are longer than {LARGEST_ROW}")
    return Type(s8, x.shape, PROBABILITIES)


def _exp(v: Any) -> Any:
    """exp(v / 2^26) 2^31 for v <= 0: a polynomial around -1/8 for the remainder between -1/4 and 0, times powers of
    e."""
    quarter = 1 << (_FRACTION_BITS - 2)
    below = (v & (quarter - 1)) - quarter
    x = (below << _INTEGER_BITS) + (1 << 28)
    x2 = high_word(x * x)
    terms = divided(high_word(x2 * x2), 2) + high_word(x2 * x)
    terms = x + divided(high_word(terms * 715827883) + x2, 1)  # 2^31 / 3
    result = 1895147668 + high_word(1895147668 * terms)  # exp(-1/8) 2^31
    quarters = (below - v) // quarter
    for bit, power in enumerate(_POWERS):
        result = np.where(quarters >> bit & 1, high_word(result * power), result)
    return np.where(v == 0, 2**31 - 1, result)


def _inverse(total: Any) -> Any:
    """2^62 / total for 2^31 <= total < 2^32, less than 2^31: three steps of Newton's method."""
    half = total >> 1
    x = 1515870810 + high_word(half * -1010580540)  # 48/17 - 32/17 half
    for _ in range(3):
        x = x + 4 * high_word(x * ((1 << 29) - high_word(half * x)))
    return np.minimum(2 * x, 2**31 - 1)


def _softmax(x: Any, *, multiplier: int, shift: int, least: int) -> Any:
    wide = x.astype(np.int64)
    below = wide - wide.max(-1, keepdims=True)
    counts = below >= least
    e = _exp(high_word((np.where(counts, below, 0) << shift) * multiplier))
    total = np.where(counts, divided(e, 12), 0).sum(-1, keepdims=True)
    bits = np.frexp(total.astype(np.float64))[1].astype(np.int64)
    y = divided(high_word(_inverse(total << (32 - bits)) * e), bits + 3)
    return np.where(counts, np.minimum(y + LOW, HIGH), LOW).astype(np.int8)


def _gradient(dy: Value, x: Value, q: Value, attrs: Attrs) -> Value:
    """dx = y (dy - sum(dy y)), with the numbers y that the result represents."""
    y = apply("dequantize", q, constant(PROBABILITIES.scale), zero=PROBABILITIES.zero_point)
    weighted = apply("sum", apply("mul", dy, y), axes=(q.ndim - 1,), keepdim=True)
    return apply("mul", y, apply("sub", dy, weighted))


def _call(layouts: Sequence[Strided], results: Sequence[Type], attrs: Attrs) -> KernelCall:
    shape = layouts[0].shape
    m, n, _ = blocks(shape, len(shape) - 1)
    numbers = {k: attrs[k] for k in ("multiplier", "shift", "least")}
    return KernelCall("softmax_s8", {"x": Operand(0), "y": Result()}, {"m": m, "n": n, **numbers})


def _sample(shape: tuple[int, ...], scale: float) -> Sample:
    return Sample((shape,), softmax_s8(scale), dtypes={0: "s8"}, integers={0: (LOW, HIGH + 1)})


softmax = define(
    "softmax_s8",  # along the last axis; elements less than the largest one plus `least` count as probability 0
    infer=_type,
    ref=_softmax,
    vjp=by_operand(_gradient),
    lower=KernelOp(
        _call, tile=lambda at, shapes, attrs: Tile({0: at}) if at.axis < len(shapes[0]) - 1 else None
    ),
    samples=(
        _sample((3, 7), 0.02),
        _sample((2, 3, 10), 0.005),
        _sample((600,), 1e-9),
        _sample((4, 5), 40.0),
        _sample((2, 1), 0.1),
    ),
)
