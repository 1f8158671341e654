"""Elements in the order of their size.

The position of an element is the number of elements before it: the cost is quadratic in the extent, and there is no
branch and no copy of the input.
"""

from __future__ import annotations

from ..ir.build import apply
from ..ir.node import Value
from ..ir.types import plain
from .arguments import TensorLike, as_value, axis_of, shape_error, torch_lacks
from .elementwise import eq, gt, logical_and, logical_or, lt, to, where
from .indexing import gather
from .shapes import reshape, transpose, unsqueeze
from .slicing import extent_of

__all__ = ["argsort", "sort", "topk"]


def _order(name: str, x: Value, axis: int, descending: bool, count: int | None = None) -> Value:
    """The s32 indices of the first `count` elements (all by default) in sorted order along an axis. Of equal elements,
    the one with the smaller index comes first."""
    d = extent_of(name, x, axis)
    y = transpose(x, axis, -1)
    index = apply("iota", size=d)
    earlier = lt(reshape(index, (1, d)), reshape(index, (d, 1)))
    one, others = unsqueeze(y, -1), unsqueeze(y, -2)
    before = gt(others, one) if descending else lt(others, one)
    ahead = logical_or(before, logical_and(eq(others, one), earlier))
    place = apply("sum_s32", to(ahead, "s32"), axes=(y.ndim,), keepdim=False)
    k = d if count is None else count
    found = eq(unsqueeze(place, -2), reshape(apply("iota", size=k), (k, 1)))
    chosen = apply("sum_s32", to(found, "s32") * index, axes=(y.ndim,), keepdim=False)
    chosen = where(gt(chosen, d - 1), d - 1, chosen)  # elements that are NaN have no order
    return transpose(chosen, axis, -1)


def argsort(input: TensorLike, dim: int = -1, descending: bool = False, stable: bool = False) -> Value:
    """The s32 indices (PyTorch: int64) that sort the input along `dim`, always stably."""
    x = as_value(input)
    return _order("argsort", x, axis_of("argsort", x, dim), descending)


@torch_lacks(out=None)
def sort(
    input: TensorLike, dim: int = -1, descending: bool = False, stable: bool = False
) -> tuple[Value, Value]:
    """The input sorted along `dim`, always stably, and the s32 indices of its elements."""
    x = as_value(input)
    axis = axis_of("sort", x, dim)
    index = _order("sort", x, axis, descending)
    return gather(x, axis, index), index


@torch_lacks(sorted=True, out=None)
def topk(input: TensorLike, k: int, dim: int = -1, largest: bool = True) -> tuple[Value, Value]:
    """The k largest (largest=False: smallest) elements along `dim`, in order, and their s32 indices. Of equal elements,
    the one with the smaller index comes first."""
    x, count = as_value(input), plain(k)
    axis = axis_of("topk", x, dim)
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= extent_of("topk", x, axis):
        raise shape_error("topk", [x], f"k={k!r} must be an integer from 1 to the extent of dim={dim}")
    index = _order("topk", x, axis, largest, count)
    return gather(x, axis, index), index
