"""Rules of the table: operators that are composed of several of our functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .rules import Arguments, Converter, Rule, Unsupported, axis, is_integer


def _addmm(c: Converter, a: Arguments) -> Any:
    """beta * self + alpha * (first @ second)."""
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


def _triangle(c: Converter, a: Arguments) -> tuple[int, np.ndarray[Any, Any]]:
    """The axis along which a cumulative operator computes; and a mask [result, element, 1, ...] that says whether an
    element is a term of a result, with an extent of 1 for each later axis."""
    shape, dim = c.shape(a["self"]), axis(c, a["self"], a["dim"])
    extent = shape[dim]
    if extent is None:
        raise Unsupported("accumulates along the batch; use another axis")
    until = np.tril(np.ones((extent, extent), np.bool_))
    return dim, until.reshape(extent, extent, *(1,) * (len(shape) - dim - 1))


def _cumprod(c: Converter, a: Arguments) -> Any:
    """Products of rows of a triangle: exact also for elements that are 0, but in quadratic time."""
    dim, until = _triangle(c, a)
    factors = c.emit("where", c.constant(until), c.emit("unsqueeze", a["self"], dim), 1.0)
    return c.emit("prod", factors, dim + 1)


def _cumulative_extreme(function: str) -> Rule:
    """cummax or cummin with indices, of equal elements the last. They reduce rows of a triangle, in quadratic time."""
    nothing = -np.inf if function == "max" else np.inf

    def rule(c: Converter, a: Arguments) -> Any:
        dim, until = _triangle(c, a)
        reverse = c.emit("unsqueeze", c.emit("flip", a["self"], dim), dim)
        shown = c.emit("where", c.constant(until[:, ::-1]), reverse, nothing)
        results = (c.names()[0], f"{c.names()[0]}.place")
        values, place = c.emit_all(function, results, shown, dim + 1)
        return [values, c.emit("{} - {}", len(until) - 1, place)]

    return rule


def _cross(c: Converter, a: Arguments) -> Any:
    """The cross product a x b. roll moves the component that follows each component to its place: the first result is
    a[1] * b[2] - a[2] * b[1]."""
    dim = axis(c, a["self"], -1 if a.get("dim") is None else a["dim"])

    def rolled(x: Any, by: int) -> Any:
        return c.emit("roll", x, by, dim)

    x, y = a["self"], a["other"]
    first = c.emit("{} * {}", rolled(x, -1), rolled(y, -2))
    return c.emit("{} - {}", first, c.emit("{} * {}", rolled(x, -2), rolled(y, -1)))


def _nan_to_num(c: Converter, a: Arguments) -> Any:
    """Numbers in place of NaN and of infinities: by default 0 and the largest numbers."""
    x, most = a["self"], float(np.finfo(np.float32).max)
    if is_integer(c, x):
        return x
    high, low = (
        most if a.get("posinf") is None else a["posinf"],
        -most if a.get("neginf") is None else a["neginf"],
    )
    y = c.emit("where", c.emit("eq", x, np.inf), high, x)
    y = c.emit("where", c.emit("eq", x, -np.inf), low, y)
    return c.emit("where", c.emit("ne", x, x), a.get("nan") or 0.0, y)


def _is_infinite(c: Converter, a: Arguments) -> Any:
    x = a["self"]
    return c.emit("ne", x, x) if is_integer(c, x) else c.emit("eq", c.emit("abs", x), np.inf)


def _is_finite(c: Converter, a: Arguments) -> Any:
    x = a["self"]
    return c.emit("eq", x, x) if is_integer(c, x) else c.emit("lt", c.emit("abs", x), np.inf)


def _fill_diagonal(c: Converter, a: Arguments) -> Any:
    """A number on the diagonal, in place of the elements there."""
    shape = c.shape(a["self"])
    if a.get("wrap") or (len(shape) > 2 and len(set(shape)) > 1):
        raise Unsupported("has wrap=True or axes of other extents; use torch.where with a mask")
    if None in shape:
        if len(shape) > 2:
            raise Unsupported("has a size that depends on the batch; use a number")
        sizes = (c.emit(f"{{}}.shape[{k}]", a["self"]) if d is None else d for k, d in enumerate(shape))
        diagonal: Any = c.emit("eye", *sizes, dtype="bool")
    else:
        extents = [d or 0 for d in shape]
        mask = np.zeros(extents, np.bool_)
        np.fill_diagonal(mask[: min(extents)], True)
        diagonal = c.constant(mask)
    return c.emit("where", diagonal, a["fill_value"], a["self"])


def _affine_grid(c: Converter, a: Arguments) -> Any:
    size = tuple(d if isinstance(d, int) else 1 for d in a["size"])  # the batch of theta
    options = {"align_corners": True} if a["align_corners"] else {}
    return c.emit("affine_grid", a["theta"], size, **options)


def _grid_sample(c: Converter, a: Arguments) -> Any:
    modes, paddings = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    mode, padding = modes[a["interpolation_mode"]], paddings[a["padding_mode"]]
    options = {"mode": mode, "padding_mode": padding, "align_corners": a["align_corners"]}
    defaults = {"mode": "bilinear", "padding_mode": "zeros", "align_corners": False}
    options = {k: v for k, v in options.items() if v != defaults[k]}
    return c.emit("grid_sample", a["input"], a["grid"], **options)


COMPOSITIONS: dict[str, Rule] = {
    **{f"aten.{name}": _addmm for name in ("addmm", "baddbmm", "addmv")},
    "aten.affine_grid_generator": _affine_grid,
    "aten.grid_sampler": _grid_sample,
    "aten.grid_sampler_2d": _grid_sample,
    "aten.dist": _dist,
    "aten.fill_diagonal": _fill_diagonal,
    "aten.isfinite": _is_finite,
    "aten.isinf": _is_infinite,
    "aten.isneginf": lambda c, a: c.emit("eq", a["self"], -np.inf),
    "aten.isposinf": lambda c, a: c.emit("eq", a["self"], np.inf),
    "aten.logaddexp2": _logaddexp2,
    "aten.cumprod": _cumprod,
    "aten.cummax": _cumulative_extreme("max"),
    "aten.cummin": _cumulative_extreme("min"),
    "aten.cross": _cross,
    "aten.linalg_cross": _cross,
    "aten.nan_to_num": _nan_to_num,
}
