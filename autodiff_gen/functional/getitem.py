"""x[key], as in PyTorch: slices, which are views, and indices in arrays."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from types import EllipsisType
from typing import Any

import numpy as np

from ..ir.build import apply, constant
from ..ir.node import CONST, Value
from ..ir.op_kinds import Iota
from ..ir.types import Dim, Size, planned_size
from ..ops.movement.slices import window
from ..ops.support import as_s32
from .arguments import TensorLike, as_value, shape_error
from .index_limits import from_end, index_source, is_below_batch
from .indexing import gather, pick
from .shapes import broadcast_to, reshape, squeeze
from .slicing import extent_of, slice_batch_axis, whole

__all__ = ["getitem"]


def getitem(input: TensorLike, key: TensorLike) -> Value:
    """input[key], as in PyTorch; slices may have negative steps too. key: integers, slices, None, an Ellipsis, and
    lists, arrays or graph values of integers for one axis or for several successive axes. A constant bool mask may
    select along one axis. Negative integers count from the end."""
    x = as_value(input)
    name = "getitem"
    keys = [_array(k) for k in (key if isinstance(key, tuple) else [key])]
    taken = sum(k is not None and k is not Ellipsis for k in keys)
    if sum(k is Ellipsis for k in keys) > 1:
        raise shape_error(name, [x], "an index may contain only one Ellipsis")
    if taken > x.ndim:
        raise shape_error(name, [x], f"{taken} indices for {x.ndim} axes")
    ellipsis = next((i for i, k in enumerate(keys) if isinstance(k, EllipsisType)), len(keys))
    keys[ellipsis : ellipsis + 1] = [slice(None)] * (x.ndim - taken)
    x, keys = _cut_batch(name, x, keys)
    alone = sum(map(_is_index, keys)) == 1
    out: list[Size] = []
    shape, starts, steps = list(x.shape), [0] * x.ndim, [1] * x.ndim
    axis = 0
    chosen: list[tuple[int, Value]] = []  # axes of the result, and the arrays that index them
    for k in keys:
        if k is None:
            out.append(1)
            continue
        if _is_index(k):
            i = k if isinstance(k, Value) else _positive(name, x, axis, k)
            equal = _equally_spaced(i) if alone else None
            if equal is None:
                chosen.append((len(out), i))
            else:
                shape[axis], starts[axis], steps[axis] = equal
            k = slice(None)
        elif not (isinstance(k, slice) and k == slice(None)):
            shape[axis], starts[axis], steps[axis] = _along(name, x, axis, k)
        if isinstance(k, slice):
            out.append(shape[axis])
        axis += 1
    y = x if tuple(shape) == x.shape and set(steps) <= {1} else window(x, tuple(shape), starts, steps)
    y = reshape(y, tuple(out))
    return _at_indices(name, y, chosen) if chosen else y


def _cut_batch(name: str, x: Value, keys: list[Any]) -> tuple[Value, list[Any]]:
    """The value after slices of an axis [c n] whose limits are multiples of the batch n; the keys that are left."""
    axis, left = 0, []
    for k in keys:
        d = x.shape[axis] if k is not None else 0
        if isinstance(k, slice) and isinstance(d, Dim) and k.step in (None, 1) and k != slice(None):
            start, stop = 0 if k.start is None else k.start, d if k.stop is None else k.stop
            if isinstance(stop, Dim):
                first = start.coef if isinstance(start, Dim) else 0
                x = slice_batch_axis(name, x, axis, start, Dim(stop.coef - first, d.cap))
                k = slice(None)
        left.append(k)
        axis += k is not None
    return x, left


def _array(key: Any) -> Any:
    """A list or an array of integers or bools as an array; any other key as it is."""
    if isinstance(key, Value | slice | EllipsisType | str) or key is None or np.ndim(key) == 0:
        return key
    array = np.asarray(key)
    return array if array.dtype.kind in "iub" and array.size else key


def _is_index(key: Any) -> bool:
    """Whether a key is integers in an array or a graph value, or a constant mask."""
    if isinstance(key, Value):
        return key.dtype.kind in "iu"
    return isinstance(key, np.ndarray) and key.ndim > 0 and key.dtype.kind in "iub"


def _positive(name: str, x: Value, axis: int, array: Any) -> Value:
    """A mask, or an array whose negative numbers count from the end, as a constant index of numbers from 0 on."""
    d = extent_of(name, x, axis)
    if array.dtype.kind == "b":
        if array.shape != (d,) or not array.any():
            raise shape_error(name, [x], f"a mask of axis {axis} must have {d} elements, some of them True")
        array = np.flatnonzero(array)
    if ((array < -d) | (array >= d)).any():
        raise shape_error(name, [x], f"an index is out of range for axis {axis} of extent {d}")
    return constant(np.where(array < 0, array + d, array).astype(np.int32))


def _equally_spaced(i: Value) -> tuple[int, int, int] | None:
    """Extent, start and step of the slice that equals a constant index; None if there is none."""
    if i.node.op is not CONST or i.ndim != 1:
        return None
    array = i.node.attrs["value"].astype(np.int64)
    steps = set(np.diff(array).tolist()) or {1}
    return None if len(steps) > 1 or 0 in steps else (len(array), int(array[0]), steps.pop())


def _along(name: str, x: Value, axis: int, key: Any) -> tuple[int, int, int]:
    """Extent, start and step of the slice that an integer or slice key selects along an axis."""
    in_array = getattr(key, "shape", ()) != ()
    if in_array or isinstance(key, bool) or not (isinstance(key, slice) or hasattr(key, "__index__")):
        raise shape_error(
            name,
            [x],
            f"{type(key).__name__} cannot be an index; integers can, masks of values that are computed are for F.where",
        )
    d = extent_of(name, x, axis)
    if not isinstance(key, slice):
        i = operator.index(key)
        if not -d <= i < d:
            raise shape_error(name, [x], f"index {i} is out of range for axis {axis} of extent {d}")
        return 1, i % d, 1
    for part, number in (("start", key.start), ("stop", key.stop), ("step", key.step)):
        if number is not None:
            whole(name, x, part, number)
    start, stop, step = key.indices(d)
    size = len(range(start, stop, step))
    if size == 0:
        raise shape_error(name, [x], f"the slice of axis {axis} of extent {d} is empty")
    return size, start, step


def _at_indices(name: str, x: Value, chosen: Sequence[tuple[int, Value]]) -> Value:
    """x[..., i, j, ...] with indices that broadcast together, for successive axes: `chosen` has axes and indices."""
    axes, indices = [axis for axis, _ in chosen], [i for _, i in chosen]
    first = axes[0]
    if axes != list(range(first, first + len(axes))):
        raise shape_error(name, [x], "indices in arrays must be for successive axes")
    if (
        len(axes) == 2
        and indices[1].shape == (x.shape[first],)
        and _counts_from_0(indices[0], x.shape[first])
    ):
        extent, i = x.shape[first + 1], indices[1]
        i = i if isinstance(extent, Dim) else from_end(name, x, i, extent)
        if x.ndim == 2 and (not isinstance(extent, Dim) or is_below_batch(i, extent)):
            return pick(x, i)
        rest = (1,) * (x.ndim - first - 2)  # one element of each row
        shape = (*x.shape[: first + 1], 1, *x.shape[first + 2 :])
        i = broadcast_to(reshape(i, (*i.shape, 1, *rest)), shape)
        return squeeze(gather(x, first + 1, i), first + 1)
    size = extent_of(name, x, first)
    index = from_end(name, x, indices[0], size)
    for axis, other in zip(axes[1:], indices[1:], strict=True):
        extent = extent_of(name, x, axis)
        index = as_s32(index) * extent + as_s32(from_end(name, x, other, extent))
        size *= extent
    y = reshape(x, (*x.shape[:first], size, *x.shape[first + len(axes) :]))
    return apply("index_select", y, index, dim=first)


def _counts_from_0(index: Value, extent: Size) -> bool:
    """Whether an index is 0, 1, 2, ... up to the extent."""
    node = index_source(index).node
    if index.shape != (extent,):
        return False
    if node.op is CONST:
        return bool((node.attrs["value"] == np.arange(planned_size(index.shape))).all())
    return isinstance(node.op.lower, Iota)
