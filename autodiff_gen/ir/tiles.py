"""Tiles: the parts of its operands from which an op computes a part of its result, a range along one axis.

Where results are sums, an op also computes terms of them, each of a range of an operand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .build import apply
from .node import Node, Value, inferred
from .op_kinds import (
    Assemble,
    Composite,
    Elementwise,
    Iota,
    KernelOp,
    Pick,
    Range,
    Reduce,
    Tile,
    View,
    ViewKind,
)
from .strides import row_major
from .traits import is_plain_product, view_kind
from .types import Shape, normalise_axes, planned, planned_size, varies


def whole(v: Value, axis: int) -> Range:
    """All elements along an axis of fixed extent."""
    extent = v.type.shape[axis]
    assert isinstance(extent, int)
    return Range(axis, 0, extent)


def part_of(v: Value, at: Range) -> Value:
    """A range of a value, as a slice; the value itself where that is the whole."""
    starts = tuple(at.start if axis == at.axis else 0 for axis in range(v.ndim))
    return slice_of(v, shape_of(v.type.shape, at), starts, (1,) * v.ndim)


def slice_of(v: Value, shape: Shape, starts: Sequence[int], steps: Sequence[int]) -> Value:
    """v[starts + i * steps]; of a slice, a slice of its operand; the value itself where that is the whole."""
    while shape != v.type.shape or any(d != 1 and step != 1 for d, step in zip(shape, steps, strict=True)):
        if view_kind(v.node) is not ViewKind.WINDOW:
            return apply("slice", v, shape=shape, starts=tuple(starts), steps=tuple(steps))
        outer = zip(v.node.attrs["starts"], v.node.attrs["steps"], starts, strict=True)
        starts = [first + step * start for first, step, start in outer]
        steps = [a * b for a, b in zip(v.node.attrs["steps"], steps, strict=True)]
        (v,) = v.node.operands
    return v


def shape_of(shape: Shape, at: Range) -> Shape:
    """The shape of a range of a value."""
    return (*shape[: at.axis], at.stop - at.start, *shape[at.axis + 1 :])


def tile_of(node: Node, at: Range) -> Tile | None:
    """The parts of the operands from which the node computes this part of its only result, or of all results of a
    composite; None where it cannot."""
    return tile_of_first(node, at) if len(node.results) == 1 or isinstance(node.op.lower, Composite) else None


def tile_of_first(node: Node, at: Range) -> Tile | None:
    """The same as tile_of, for the first result."""
    lower = node.op.lower
    shapes = [planned(v.type.shape) for v in node.operands]
    if isinstance(lower, Composite) and not lower.elementwise:
        axes = node.attrs.get("axes")
        computes_each = axes is not None and at.axis not in normalise_axes(axes, node.results[0].ndim)
        return _of_elementwise(node, at) if computes_each else None
    if isinstance(lower, Elementwise | Composite):
        return _of_elementwise(node, at)
    if is_plain_product(node):
        return _of_product(node, at)
    if isinstance(lower, View):
        return _of_view(node, at)
    if isinstance(lower, Assemble):
        return _of_assembled(node, at)
    if isinstance(lower, Pick):
        read = enumerate(lower.axes(shapes[0], shapes[1], node.attrs))
        return Tile({k: replace(at, axis=axes.index(at.axis)) for k, axes in read if at.axis in axes})
    if isinstance(lower, Reduce):
        axes = normalise_axes(node.attrs["axes"], len(shapes[0]))
        rest = [a for a in range(len(shapes[0])) if node.attrs["keepdim"] or a not in axes]
        axis = rest[at.axis]
        return None if axis in axes else Tile({0: replace(at, axis=axis)})
    return lower.tile(at, shapes, node.attrs) if isinstance(lower, KernelOp) else None


def term_of(node: Node, operand: int, at: Range) -> Tile | None:
    """The operand ranges from which the node computes the term of its result that this range of one operand gives; None
    if its result is no sum of such terms."""
    lower = node.op.lower
    if len(node.results) != 1:
        return None
    if isinstance(lower, Reduce):
        axes = normalise_axes(node.attrs["axes"], node.operands[0].ndim)
        return Tile({0: at}) if lower.sums and at.axis in axes else None
    if is_plain_product(node):
        a, b = (v.ndim - k for v, k in zip(node.operands, (1, 2), strict=True))
        return Tile({0: replace(at, axis=a), 1: replace(at, axis=b)}) if at.axis == (a, b)[operand] else None
    shapes = [planned(v.type.shape) for v in node.operands]
    return lower.term_of(operand, at, shapes, node.attrs) if isinstance(lower, KernelOp) else None


def axis_of_result(node: Node, operand: int, axis: int) -> int | None:
    """The axis of the result along which a range is computed from a range along this axis of an operand; None if there
    is none."""
    if len(node.results) != 1:
        return None
    (y,) = node.results
    for a, extent in enumerate(y.type.shape):
        tile = tile_of(node, whole(y, a)) if isinstance(extent, int) else None
        if tile is not None and operand in tile.ranges and tile.ranges[operand].axis == axis:
            return a
    return None


def computed(node: Node, tile: Tile, operands: tuple[Value, ...]) -> Node:
    """The node that computes a tile from the parts of the operands that it needs."""
    attrs = {**node.attrs, **tile.changes}
    return Node(node.op, operands, attrs, inferred(node.op, [v.type for v in operands], attrs))


def indices(node: Node, at: Range) -> Value:
    """A part of the result of an op without operands, which is the index of each element."""
    assert isinstance(node.op.lower, Iota)
    shape = node.results[0].type.shape
    strides = node.attrs.get("strides", row_major(shape))
    offset = node.attrs.get("offset", 0) + at.start * strides[at.axis]
    return apply("places", shape=shape_of(shape, at), strides=strides, offset=offset)


def _of_elementwise(node: Node, at: Range) -> Tile | None:
    y, given = node.results[0], node.attrs.get("quantization")
    if given is not None and given.axis == at.axis:
        return None
    found = {}
    for k, v in enumerate(node.operands):
        axis = at.axis - y.ndim + v.ndim
        if axis >= 0 and v.type.shape[axis] == y.type.shape[at.axis]:
            found[k] = replace(at, axis=axis)
    return Tile(found)


def _of_product(node: Node, at: Range) -> Tile:
    y, found = node.results[0], {}
    for k, v in enumerate(node.operands):
        axis = at.axis - y.ndim + v.ndim
        if axis >= 0 and axis != v.ndim - (1, 2)[k] and v.type.shape[axis] == y.type.shape[at.axis]:
            found[k] = replace(at, axis=axis)
    return Tile(found)


def _of_assembled(node: Node, at: Range) -> Tile | None:
    (y,), axis = node.results, at.axis
    windows = zip(node.operands, node.attrs["starts"], node.attrs["steps"], strict=True)
    found = {(v.type.shape[axis], start[axis], step[axis]) for v, start, step in windows}
    if found != {(y.type.shape[axis], 0, 1)}:
        return None
    return Tile(dict.fromkeys(range(len(node.operands)), at), {"shape": shape_of(y.type.shape, at)})


def _of_view(node: Node, at: Range) -> Tile | None:
    (x,), (y,), kind = node.operands, node.results, node.op.lower
    assert isinstance(kind, View)
    if kind.kind is ViewKind.WINDOWS:
        return None
    changes: dict[str, Any] = {} if kind.kind is ViewKind.PERMUTE else {"shape": shape_of(y.type.shape, at)}
    if kind.kind is ViewKind.WINDOW:  # the elements that a range reads, and those between them
        starts, step = [*node.attrs["starts"]], node.attrs["steps"][at.axis]
        places = [starts[at.axis] + i * step for i in (at.start, at.stop - 1)]
        starts[at.axis] = places[0] - min(places)
        return Tile({0: Range(at.axis, min(places), max(places) + 1)}, {**changes, "starts": tuple(starts)})
    if kind.kind is ViewKind.RESHAPE:
        found = _reshaped(x.type.shape, y.type.shape, at)
        return None if found is None else Tile({0: found}, changes)
    axes = kind.dims(x.type.shape, y.type.shape, node.attrs)
    if axes is None:
        return None
    axis = axes[at.axis]
    return Tile({} if axis is None else {0: replace(at, axis=axis)}, changes)


def _reshaped(x: Shape, y: Shape, at: Range) -> Range | None:
    """The range of x with the same elements, in row-major order, as the range `at` of y; None if there is none."""
    before, after = planned_size(y[: at.axis]), planned_size(y[at.axis + 1 :])
    for axis, extent in enumerate(x):
        inner = planned_size(x[axis + 1 :])
        if varies([extent]) != varies([y[at.axis]]) or planned_size(x[:axis]) != before or extent == 1:
            continue
        if (extent, inner) == (y[at.axis], after):
            return replace(at, axis=axis)
        start, stop = at.start * after, at.stop * after
        if not start % inner and not stop % inner:
            return Range(axis, start // inner, stop // inner)
    return None
