"""Rules of the table: operators that are several of our functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .rules import Arguments, Converter, Rule, Unsupported, axis


def _addmm(c: Converter, a: Arguments) -> Any:
    """beta * self + alpha * (a product)."""
    first = next(a[name] for name in ("mat1", "batch1", "mat") if name in a)
    second = next(a[name] for name in ("mat2", "batch2", "vec") if name in a)
    product, added = c.emit("matmul", first, second), a["self"]
    if a.get("alpha", 1) != 1:
        product = c.emit("{} * {}", product, a["alpha"])
    if a.get("beta", 1) != 1:
        added = c.emit("{} * {}", added, a["beta"])
    return c.emit("{} + {}", product, added)


def _dist(c: Converter, a: Arguments) -> Any:
    return c.emit("norm", c.emit("{} - {}", a["self"], a["other"]), a.get("p", 2))


def _logaddexp2(c: Converter, a: Arguments) -> Any:
    x, y = (c.emit("{} * {}", a[name], math.log(2.0)) for name in ("self", "other"))
    return c.emit("{} / {}", c.emit("logaddexp", x, y), math.log(2.0))


def _cumprod(c: Converter, a: Arguments) -> Any:
    """Products of rows of a triangle: exact also where elements are 0, in the square of the time."""
    dim = axis(c, a["self"], a["dim"])
    extent = c.shape(a["self"])[dim]
    if extent is None:
        raise Unsupported("multiplies along the batch; use another axis")
    rest = (1,) * (len(c.shape(a["self"])) - dim - 1)
    until = np.tril(np.ones((extent, extent), np.bool_)).reshape(extent, extent, *rest)
    factors = c.emit("where", c.constant(until), c.emit("unsqueeze", a["self"], dim), 1.0)
    return c.emit("prod", factors, dim + 1)


def _cross(c: Converter, a: Arguments) -> Any:
    """a x b, of what follows each component: a[1] * b[2] - a[2] * b[1] is the first."""
    dim = axis(c, a["self"], -1 if a.get("dim") is None else a["dim"])

    def rolled(x: Any, by: int) -> Any:
        return c.emit("roll", x, by, dim)

    x, y = a["self"], a["other"]
    first = c.emit("{} * {}", rolled(x, -1), rolled(y, -2))
    return c.emit("{} - {}", first, c.emit("{} * {}", rolled(x, -2), rolled(y, -1)))


COMPOSITIONS: dict[str, Rule] = {
    **{f"aten.{name}": _addmm for name in ("addmm", "baddbmm", "addmv")},
    "aten.dist": _dist,
    "aten.logaddexp2": _logaddexp2,
    "aten.cumprod": _cumprod,
    "aten.cross": _cross,
    "aten.linalg_cross": _cross,
}
