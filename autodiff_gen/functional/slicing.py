"""Slices of a value, which are views. The batch axis can only be taken whole; an axis of several batches, such as
[2 n, d], can be cut between the batches, which copies."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex

from ..ir.node import Value
from ..ir.types import Dim, Size, product
from ..ops.movement.slices import window
from .arguments import Dims, TensorLike, as_value, axes_of, axis_of, shape_error
from .shapes import groups_of_batch, merged_groups, reshape

__all__ = ["chunk", "flip", "narrow", "select", "split", "unbind"]


def cut(x: Value, axis: int, start: int, size: int, step: int = 1) -> Value:
    """`size` elements along an axis, starting at `start`."""
    if size == x.shape[axis] and step == 1:
        return x
    shape, starts, steps = list(x.shape), [0] * x.ndim, [1] * x.ndim
    shape[axis], starts[axis], steps[axis] = size, start, step
    return window(x, tuple(shape), starts, steps)


def extent_of(name: str, x: Value, axis: int) -> int:
    """The extent of an axis. Raises ShapeError for the batch axis, which cannot be sliced, joined or repeated."""
    d: Size = x.shape[axis]
    if isinstance(d, Dim):
        raise shape_error(
            name,
            [x],
            f"axis {axis} is the batch axis, which can only be taken whole; "
            "an Input without batch_axis has a fixed batch",
        )
    return d


def in_groups(name: str, x: Value, axis: int) -> Value:
    """x [c n, ...] as [c, n, ...], for the batch n. Raises ShapeError for integers, which cannot be copied, and if axes
    before the batch axis have extents other than 1."""
    d = x.shape[axis]
    assert isinstance(d, Dim)
    if product(x.shape[:axis]) != 1 or x.dtype.kind != "f":
        raise shape_error(name, [x], "of a batch that varies, the first axis of floats can be joined and cut")
    return groups_of_batch(reshape(x, x.shape[axis:]), d.coef)


def slice_batch_axis(name: str, x: Value, axis: int, start: Size, size: Size) -> Value:
    """`size` elements along an axis that follows the batch, starting at `start`; both are multiples of the batch n."""
    d = x.shape[axis]
    assert isinstance(d, Dim)
    first, count = (
        k.coef if isinstance(k, Dim) and (k.cap, k.power) == (d.cap, 1) else 0 if k == 0 else -1
        for k in (start, size)
    )
    if first < 0 or count < 1 or first + count > d.coef:
        extent_of(name, x, axis)  # raises
    if count == d.coef:
        return x
    part = cut(in_groups(name, x, axis), 0, first, count)
    return reshape(merged_groups(part), (*x.shape[:axis], size, *x.shape[axis + 1 :]))


def whole(name: str, x: Value, what: str, number: SupportsIndex) -> int:
    """`number` as an int. Raises ShapeError if it is no integer."""
    if isinstance(number, bool) or not hasattr(number, "__index__"):
        raise shape_error(name, [x], f"{what}={number!r} must be an integer")
    return operator.index(number)


def narrow(input: TensorLike, dim: int, start: int, length: int) -> Value:
    """`length` elements along `dim`, starting at `start`."""
    x = as_value(input)
    axis = axis_of("narrow", x, dim)
    if isinstance(x.shape[axis], Dim):
        return slice_batch_axis("narrow", x, axis, start, length)
    d = extent_of("narrow", x, axis)
    first, size = whole("narrow", x, "start", start), whole("narrow", x, "length", length)
    if not (-d <= first < d and size >= 1 and first % d + size <= d):
        raise shape_error("narrow", [x], f"start={first} and length={size} exceed an axis of extent {d}")
    return cut(x, axis, first % d, size)


def select(input: TensorLike, dim: int, index: int) -> Value:
    """The elements at one index along `dim`, without that axis."""
    x = as_value(input)
    axis = axis_of("select", x, dim)
    d, i = extent_of("select", x, axis), whole("select", x, "index", index)
    if not -d <= i < d:
        raise shape_error("select", [x], f"index={i} is out of range for axis {axis} of extent {d}")
    return reshape(cut(x, axis, i % d, 1), tuple(e for k, e in enumerate(x.shape) if k != axis))


def split(tensor: TensorLike, split_size_or_sections: int | Sequence[int], dim: int = 0) -> list[Value]:
    """Parts along `dim`, as a list: of the given size, the last possibly smaller, or of the listed sizes."""
    x = as_value(tensor)
    axis = axis_of("split", x, dim)
    if isinstance(x.shape[axis], Dim):
        return _split_batch(x, axis, split_size_or_sections)
    d = extent_of("split", x, axis)
    if isinstance(split_size_or_sections, Sequence):
        sizes = [whole("split", x, "section", s) for s in split_size_or_sections]
        if min(sizes, default=0) < 1 or sum(sizes) != d:
            raise shape_error("split", [x], f"the sections {sizes} must be at least 1 and add up to {d}")
    else:
        size = whole("split", x, "split_size", split_size_or_sections)
        if size < 1:
            raise shape_error("split", [x], f"split_size={size} must be at least 1")
        sizes = [min(size, d - start) for start in range(0, d, size)]
    return [cut(x, axis, sum(sizes[:k]), size) for k, size in enumerate(sizes)]


def _split_batch(x: Value, axis: int, given: Any) -> list[Value]:
    d = x.shape[axis]
    assert isinstance(d, Dim)
    sizes = list(given) if isinstance(given, Sequence) else [given] * d.coef
    parts: list[Value] = []
    start: Size = 0
    for size in sizes:
        if start == d:
            break
        parts.append(slice_batch_axis("split", x, axis, start, size))
        start = size if start == 0 else start + size
    if start != d:
        raise shape_error("split", [x], f"the sections {sizes} must add up to {d}")
    return parts


def chunk(input: TensorLike, chunks: int, dim: int = 0) -> list[Value]:
    """At most `chunks` parts of one size along `dim`, as a list; the last may be smaller."""
    x = as_value(input)
    axis = axis_of("chunk", x, dim)
    extent = x.shape[axis]
    if isinstance(extent, Dim) and isinstance(chunks, int) and chunks > 0 and extent.coef % chunks == 0:
        return _split_batch(x, axis, extent // chunks)
    d, count = extent_of("chunk", x, axis), whole("chunk", x, "chunks", chunks)
    if count < 1:
        raise shape_error("chunk", [x], f"chunks={count} must be at least 1")
    return split(x, -(-d // count), axis)


def unbind(input: TensorLike, dim: int = 0) -> list[Value]:
    """The slices at all indices along `dim`, without that axis, as a list."""
    x = as_value(input)
    axis = axis_of("unbind", x, dim)
    return [select(x, axis, i) for i in range(extent_of("unbind", x, axis))]


def flip(input: TensorLike, dims: Dims) -> Value:
    """The elements in reverse order along the axes `dims`."""
    x = as_value(input)
    for axis in axes_of("flip", x, dims) if dims != () else ():
        d = extent_of("flip", x, axis)
        x = cut(x, axis, d - 1, d, -1) if d > 1 else x
    return x
