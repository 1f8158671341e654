"""Elements that are replaced at indices, or combined with the elements there.

Sums have kernels. Products, maxima and minima compare each index with each position along the axis: the number of
comparisons is the product of both extents, and their results are not stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir.build import apply
from ..ir.node import CONST, Value
from ..ir.types import product
from ..ops.support import as_s32
from .arguments import TensorLike, as_value, axis_of, shape_error, torch_lacks
from .elementwise import eq, gt, maximum, minimum, mul, where
from .index_limits import from_end, in_range
from .indexing import index_add, scatter_add
from .joining import pad
from .reductions import amax, amin, prod
from .shapes import broadcast_to, permute, reshape, unsqueeze
from .slicing import cut, extent_of

__all__ = ["index_put", "scatter", "scatter_reduce"]

LARGEST = float(np.finfo(np.float32).max)
# reduce -> the reduction along an axis, the combination of two values, and the result for no values
COMBINATIONS: dict[str, tuple[Callable[..., Value], Callable[..., Value], float]] = {
    "prod": (prod, mul, 1.0),
    "amax": (amax, maximum, -LARGEST),
    "amin": (amin, minimum, LARGEST),
}
ARITHMETIC = ("sum", "mean", *COMBINATIONS)


@torch_lacks(reduce=None)
def scatter(input: TensorLike, dim: int, index: TensorLike, src: Any) -> Value:
    """input with the element at [i, index[i, j, k], k] replaced by src[i, j, k], or by the number src, for dim=1. Along
    other axes the index may be shorter than both. If several elements of src replace one element, their sum does;
    PyTorch takes any of them."""
    x, i = as_value(input), as_value(index)
    if isinstance(src, Value) or np.ndim(src):
        return scatter_reduce(x, dim, i, src, "sum", include_self=False)
    axis = axis_of("scatter", x, dim)
    if i.shape == (*x.shape[:axis], 1, *x.shape[axis + 1 :]):  # one place in each row, as of a one-hot vector
        extent = extent_of("scatter", x, axis)
        place = reshape(apply("iota", size=extent), (extent, *(1,) * (x.ndim - axis - 1)))
        return where(eq(as_s32(in_range("scatter", x, i, extent)), place), float(src), x)
    one = broadcast_to(as_value(1.0), i.shape)
    return where(gt(scatter_add(_zeros(x), axis, i, one), 0.0), float(src), x)


def scatter_reduce(
    input: TensorLike, dim: int, index: TensorLike, src: TensorLike, reduce: str, *, include_self: bool = True
) -> Value:
    """input with src[i, j, k] combined with the element at [i, index[i, j, k], k] for dim=1; floats only. Along other
    axes the index may be shorter than both. reduce: "sum", "prod", "mean", "amax" or "amin". include_self=False:
    elements of src are combined with each other only, and replace the input's element.

    If the input's element equals the largest (or smallest) element of src, it gets half of the gradient."""
    x, s, name = as_value(input), as_value(src), "scatter_reduce"
    if reduce not in ARITHMETIC:
        raise shape_error(name, [x], f"reduce={reduce!r}; known: {', '.join(ARITHMETIC)}")
    axis = axis_of(name, x, dim)
    i = in_range(name, x, index, extent_of(name, x, axis))
    one = broadcast_to(as_value(1.0), i.shape)
    if reduce in COMBINATIONS:
        along, of_two, nothing = COMBINATIONS[reduce]
        found = _combined(x, axis, i, s, along, nothing)
        if include_self:
            return of_two(x, found)
        return where(gt(scatter_add(_zeros(x), axis, i, one), 0.0), found, x)
    empty = x if include_self else _zeros(x)
    found = scatter_add(empty, axis, i, s)
    if reduce == "sum" and include_self:
        return found
    count = scatter_add(broadcast_to(as_value(float(include_self)), x.shape), axis, i, one)
    if reduce == "sum":
        return where(gt(count, 0.0), found, x)
    return found / count if include_self else where(gt(count, 0.0), found / maximum(count, 1.0), x)


def index_put(input: TensorLike, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Value:
    """input with input[indices] replaced by values, as PyTorch's `x[:, i, j] = values`. indices: integers that
    broadcast together, negative ones counting from the end, with None for an axis that is taken whole; or one mask, for
    values that broadcast. accumulate: values are added instead. If several values replace one element, their sum does;
    PyTorch takes any of them. A constant number replaces elements as it is."""
    x, v, name = as_value(input), as_value(values), "index_put"
    given = {k: as_value(i) for k, i in enumerate(indices) if i is not None}
    first = min(given, default=0)
    if len(given) == 1 and given[first].dtype.kind == "b":
        mask = given[first]
        mask = reshape(mask, (*mask.shape, *(1,) * (x.ndim - first - mask.ndim)))
        return where(mask, x + v if accumulate else v, x)
    if not given or max(given) >= x.ndim:
        raise shape_error(name, [x, *given.values()], f"{len(indices)} indices for {x.ndim} axes")
    size, place = 1, as_value(0)
    for axis, i in given.items():
        d = extent_of(name, x, axis)
        size, place = size * d, as_s32(place) * d + as_s32(from_end(name, x, i, d))
    order = [*range(first), *given, *(k for k in range(first, x.ndim) if k not in given)]
    moved = x if order == [*range(x.ndim)] else permute(x, order)
    before, after = moved.shape[:first], moved.shape[first + len(given) :]
    if v.ndim and moved is not x:  # as in PyTorch, the axes of the indices come first in `values`
        own = len(place.shape)
        v = broadcast_to(v, (*place.shape, *before, *after))
        v = permute(v, [*range(own, own + first), *range(own), *range(own + first, v.ndim)])
    width, count = product(after), product(place.shape)
    flat, place_of = reshape(moved, (*before, size, width)), reshape(place, (count,))
    source = reshape(broadcast_to(v, (*before, *place.shape, *after)), (*before, count, width))
    if accumulate:
        y = index_add(flat, first, place_of, source)
    else:
        one, zero = (broadcast_to(as_value(k), (d, 1)) for k, d in ((1.0, count), (0.0, size)))
        is_number = v.node.op is CONST and v.ndim == 0
        new = v if is_number else index_add(_zeros(flat), first, place_of, source)
        y = where(gt(index_add(zero, 0, place_of, one), 0.0), new, flat)
    y = reshape(y, moved.shape)
    return y if moved is x else permute(y, [order.index(k) for k in range(x.ndim)])


def _zeros(x: Value) -> Value:
    """Zeros of x's shape; 0 * x would be NaN where x is infinite."""
    return broadcast_to(as_value(0.0), x.shape)


def _combined(x: Value, axis: int, i: Value, s: Value, along: Any, nothing: float) -> Value:
    """For each element of x, the reduction of the elements of s that the index assigns to it; `nothing` if none is."""
    name, d = "scatter_reduce", extent_of("scatter_reduce", x, axis)
    if not i.ndim == x.ndim == s.ndim:
        raise shape_error(name, [x, i, s], "input, index and src must have as many axes")
    for k, count in enumerate(i.shape):
        if count != s.shape[k]:
            s = cut(s, k, 0, extent_of(name, i, k))
    place = reshape(apply("iota", size=d), (d, *(1,) * (x.ndim - axis)))
    chosen = where(eq(unsqueeze(as_s32(i), axis), place), unsqueeze(s, axis), nothing)
    found = along(chosen, axis + 1)
    missing: list[int] = []
    for k in reversed(range(x.ndim)):
        missing += [
            0,
            0 if x.shape[k] == found.shape[k] else extent_of(name, x, k) - extent_of(name, found, k),
        ]
    return pad(found, missing, value=nothing) if any(missing) else found
