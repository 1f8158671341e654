"""How numbers and extents are spelled in C."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

from ..ir.types import DType, Size


def float_literal(x: float) -> str:
    """The shortest decimal that reads back as the float32 nearest to x; independent of NumPy's printing."""
    if math.isnan(x):
        return "NAN"
    exact = _float32(x)
    if math.isinf(exact):
        return "INFINITY" if x > 0 else "-INFINITY"
    for digits in range(1, 10):
        text = f"{exact:.{digits}g}"
        if _float32(float(text)) == exact:
            break
    return f"{float(text)!r}f"  # 200.0f rather than 2e+02f


def _float32(x: float) -> float:
    """x rounded to float32; beyond its range, an infinity."""
    try:
        number: float = struct.unpack("<f", struct.pack("<f", x))[0]
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


def element(place: str, index: str) -> str:
    """Element `index` of an array: `name[i]`, or `buf[OFFSET + i]` where the place is the sum `buf + OFFSET`."""
    pointer, plus, start = place.partition(" + ")
    if not plus or place.startswith("("):
        return f"{place}[{index}]"
    return f"{pointer}[{start}]" if index == "0" else f"{pointer}[{start} + {index}]"


def wrapped(start: str, terms: Sequence[str]) -> list[str]:
    """The statement `start` + the sum of `terms`, over several lines where it would be long."""
    lines = [start + terms[0]]
    for term in terms[1:]:
        lines[-1] += " +"
        if len(lines[-1]) + len(term) > 92:
            lines.append(" " * 8 + term)
        else:
            lines[-1] += " " + term
    return [*lines[:-1], lines[-1] + ";"]


def extent(size: Size) -> str:
    """An extent as a C expression over the run-time batch size n."""
    if isinstance(size, int):
        return str(size)
    return "n" if size.coef == 1 else f"{size.coef} * n"


def index(up: Sequence[str], down: Sequence[str] = ()) -> str:
    """The sum of `up` less `down`. A product alone has its 0 written: `i * 10 + 0` beside `i * 10 + 1`."""
    if len(up) == 1 and " * " in up[0] and not down:
        up = (*up, "0")
    return " - ".join([" + ".join(up) or "0", *down])


def offset(start: int, steps: Sequence[tuple[str, int]]) -> list[str]:
    """The terms of an offset: `start`, and variables times their steps."""
    terms = [str(start)] if start else []
    return terms + [var if step == 1 else f"{var} * {step}" for var, step in steps if step and var != "0"]


def plus(pointer: str, offset: Sequence[str]) -> str:
    """A pointer moved by the sum of some terms."""
    if len(offset) > 1:
        return f"{pointer} + ({' + '.join(offset)})"
    return "".join((pointer, *(f" + {'(ptrdiff_t)' if ' * ' in term else ''}{term}" for term in offset)))


def shown(shape: tuple[object, ...]) -> str:
    """A shape in a comment."""
    return f"[{','.join(map(repr, shape))}]" if shape else "scalar"
