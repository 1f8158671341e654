"""How numbers, extents and shapes are spelled in C and in its comments."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from functools import cache
from typing import Any

from ...ir.types import DType, Size
from . import c_ast as c

_FLOAT32 = struct.Struct("<f")


def float_literal(x: float) -> str:
    """The shortest decimal that reads back as the float32 nearest to x; independent of NumPy's printing."""
    if math.isnan(x):
        return "NAN"
    exact = _float32(x)
    if math.isinf(exact):
        return "INFINITY" if x > 0 else "-INFINITY"
    return _shortest(_FLOAT32.pack(exact))


@cache
def _shortest(bits: bytes) -> str:
    """The shortest decimal of a finite float32; -0.0 and 0.0 differ."""
    (exact,) = _FLOAT32.unpack(bits)
    text = f"{exact:.9g}"  # nine digits are always enough, and most numbers need eight or nine
    for digits in range(8, 0, -1):
        shorter = f"{exact:.{digits}g}"
        if _float32(float(shorter)) != exact:
            break
        text = shorter
    return f"{float(text)!r}f"  # 200.0f rather than 2e+02f


def _float32(x: float) -> float:
    """x rounded to float32; beyond its range, an infinity."""
    try:
        number: float = _FLOAT32.unpack(_FLOAT32.pack(x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)
    return number


def literal(value: Any, dtype: DType) -> str:
    """A scalar constant of the given dtype."""
    if dtype.kind == "f":
        return float_literal(float(value))
    return str(int(value)) + ("u" if dtype.kind == "u" else "")


def attribute(value: Any) -> str:
    """An op's attribute, as its C template wants it."""
    return float_literal(value) if isinstance(value, float) else str(int(value))


def extent(size: Size) -> str:
    """An extent as a C expression over the run-time batch size n."""
    if isinstance(size, int):
        return str(size)
    n = " * ".join([size.name] * size.power)
    return n if size.coef == 1 else f"{size.coef} * {n}"


def size(value: Size) -> c.Expr:
    """An extent as an expression."""
    if isinstance(value, int):
        return c.number(value)
    n = c.Name(value.name)
    result: c.Expr = n if value.coef == 1 else c.Binary("*", c.number(value.coef), n)
    for _ in range(value.power - 1):
        result = c.Binary("*", result, n)
    return result


def offset(start: int, steps: Sequence[tuple[c.Expr | None, int]]) -> list[c.Expr]:
    """The terms of an offset: `start`, and variables times their steps."""
    terms: list[c.Expr] = [c.number(start)] if start else []
    return terms + [c.times(var, step) for var, step in steps if step and var is not None]


def shown(shape: tuple[object, ...]) -> str:
    """A shape in a comment."""
    return f"[{','.join(map(repr, shape))}]" if shape else "scalar"
