"""Fold sums over one-hot vectors: where an index is compared with all positions of an axis, one element of the sum is
not 0, and it is known which.

    entry f(x: f32[2,1])
      %0: s32[4] = iota(size=4)
      %1: s32[2] = iota(size=2)
      %2: s32[2,1] = reshape(%1, shape=(2, 1))
      %3: bool[2,4] = eq(%0, %2)
      %4: f32[2,4] = where(%3, x, 0.0)
      %5: f32[2,1] = sum(%4, axes=(1,), keepdim=True)
      y <- %5
    ->
    entry f(x: f32[2,1])
      y <- x

Such sums are in the gradient of a cross-entropy. The result is the same in float32, since 0 is added to one number. An
index that may be out of range, whose vector has only zeros, is left.
"""

from __future__ import annotations

from ...ir.build import broadcast_to, constant, with_shape
from ...ir.graph import Graph
from ...ir.index_ranges import range_of
from ...ir.node import Node, Value, base
from ...ir.op_kinds import Elementwise, Iota, Reduce, View
from ...ir.rewrite import rewritten
from ...ir.traits import is_sum, uniform
from ...ir.types import Shape, normalise_axes, planned_size
from ..context import Context


def fold_one_hot_sums(graph: Graph, context: Context) -> Graph:
    """See the module."""

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...] | None:
        (x,) = operands
        axes = normalise_axes(node.attrs["axes"], x.ndim)
        number = _number(x, axes[0]) if len(axes) == 1 else None
        return None if number is None else (_without(number, x, axes[0], node.results[0]),)

    return rewritten(graph, rewrite, filter(is_sum, graph.of(Reduce)))


def _number(v: Value, axis: int) -> Value | None:
    """The element of a one-hot vector along `axis` that is not 0, with that axis of extent 1; None if v is no such
    vector."""
    node = v.node
    if isinstance(node.op.lower, Elementwise) and node.op.lower.converts and v.type.dtype.kind != "b":
        found = _number(node.operands[0], axis)
        return None if found is None else constant(1.0, v.type.dtype)
    if node.op.equality:
        p, q = node.operands
        hot = _is_position(p, v, axis, q) or _is_position(q, v, axis, p)
        return constant(True) if hot else None
    if node.op.chooses == (1, 2) and len(node.operands) == 3 and uniform(node.operands[2]) == 0:
        which, number, _ = node.operands
        same = which.type.shape == v.type.shape and not _varies(number, v, axis)
        return number if same and _number(which, axis) is not None else None
    return None


def _is_position(p: Value, v: Value, axis: int, index: Value) -> bool:
    """Whether p counts along this axis of v, and the index, which is one for all positions, is one of them."""
    source, extent = base(p), v.type.shape[axis]
    if (
        not isinstance(source.node.op.lower, Iota)
        or "strides" in source.node.attrs
        or not isinstance(extent, int)
    ):
        return False
    shape = _aligned(p, v)
    counts = shape[axis] == extent == planned_size(shape) == planned_size(source.type.shape)
    return counts and not _has_window(p) and not _varies(index, v, axis) and _is_below(index, extent)


def _aligned(x: Value, v: Value) -> Shape:
    """The extents of x along the axes of v, to which it is broadcast."""
    return (*(1,) * (v.ndim - x.ndim), *x.type.shape)


def _varies(x: Value, v: Value, axis: int) -> bool:
    return _aligned(x, v)[axis] != 1


def _has_window(v: Value) -> bool:
    while isinstance(v.node.op.lower, View):
        if v.node.op.lower.window:
            return True
        v = v.node.operands[0]
    return False


def _is_below(index: Value, extent: int) -> bool:
    """Whether an index is from 0 to extent - 1, for certain or because the generated function checks it."""
    low, high = range_of(index)
    return low >= 0 and high < extent


def _without(number: Value, x: Value, axis: int, result: Value) -> Value:
    """The number, aligned with x, without the axis that the sum is over, and stretched to the result."""
    shape = _aligned(number, x)
    if result.ndim < x.ndim:
        shape = (*shape[:axis], *shape[axis + 1 :])
    return broadcast_to(with_shape(number, shape), result.type.shape)
