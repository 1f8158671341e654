"""Cumulative sums, and lower and upper triangles of matrices."""

from __future__ import annotations

from ..ir.build import apply
from ..ir.node import Value
from .arguments import TensorLike, as_value, axis_of, shape_error, torch_lacks
from .elementwise import ge, le, logical_and, where
from .shapes import reshape
from .slicing import whole

__all__ = [
    "cumsum",
    "tril",
    "triu",
]


@torch_lacks(dtype=None)
def cumsum(input: TensorLike, dim: int) -> Value:
    """y[k] = input[0] + ... + input[k] along `dim`, with the input's shape; floats only."""
    x = as_value(input)
    if x.ndim == 0:
        axis_of("cumsum", reshape(x, (1,)), dim)
        return x
    return apply("cumsum", x, dim=axis_of("cumsum", x, dim), reverse=False)


def tril(input: TensorLike, diagonal: int = 0) -> Value:
    """The lower triangle of the last two axes, up to the given diagonal; 0 elsewhere."""
    return _triangle("tril", as_value(input), diagonal)


def triu(input: TensorLike, diagonal: int = 0) -> Value:
    """The upper triangle of the last two axes, from the given diagonal on; 0 elsewhere."""
    return _triangle("triu", as_value(input), diagonal)


def _triangle(name: str, x: Value, diagonal: int) -> Value:
    if x.ndim < 2:
        raise shape_error(name, [x], "needs at least two axes")
    shift = whole(name, x, "diagonal", diagonal)
    rows = reshape(apply("iota", size=x.shape[-2]), (x.shape[-2], 1))
    columns = apply("iota", size=x.shape[-1])
    inside = (le if name == "tril" else ge)(columns, rows + shift if shift else rows)
    if x.dtype.kind == "b":
        return logical_and(inside, x)
    return where(inside, x, 0 if x.dtype.kind in "iu" else 0.0)
