"""Selection propagation: where only some elements along an axis of a product are read, the product is computed of the
same elements of its operands.

    entry f(a: f32[2,3], b: f32[3,4], i: s32[2])
      %0: f32[2,4] = matmul(a, b)
      %1: f32[2,2] = index_select(%0, i, dim=1)
      y <- %1
    ->
    entry f(a: f32[2,3], b: f32[3,4], i: s32[2])
      %0: f32[3,2] = index_select(b, i, dim=1)
      %1: f32[2,2] = matmul(a, %0)
      y <- %1

A gradient of the weights of some channels then takes their part of the multiply-accumulates, and keeps their part of
the image alive.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...ir.build import apply
from ...ir.graph import Graph
from ...ir.node import Node, Value
from ...ir.op_kinds import Call, Contraction, Pick, Range
from ...ir.rewrite import rewritten
from ...ir.tiles import tile_of
from ...ir.types import planned
from ..context import Context


def selection_propagation(graph: Graph, context: Context) -> Graph:
    """See the module."""
    selections = [n for n in graph.of(Pick) if _axis(n) is not None]
    if not selections:
        return graph
    alone = {v for v, readers in graph.users.items() if len(readers) == 1}.difference(graph.roots)

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...] | None:
        v, index = operands
        axis = _axis(node)
        if axis is None or v is not node.operands[0] or not _leads_to_a_product(v, axis, alone):
            return None
        return (_selected(v, index, axis, alone),)

    return rewritten(graph, rewrite, selections)


def _axis(node: Node) -> int | None:
    """The axis along which fewer elements than it has are selected, all others being read in order; None of other
    picks."""
    x, index = node.operands
    lower = node.op.lower
    assert isinstance(lower, Pick)
    of_x, of_index = lower.axes(x.type.shape, index.type.shape, node.attrs)
    if len(of_index) != 1 or of_x.count(None) != 1:
        return None
    axis = of_x.index(None)
    in_order = all(a == k for k, a in enumerate(of_x) if k != axis) and of_index == (axis,)
    sizes = planned((x.type.shape[axis], *index.type.shape))
    return axis if in_order and sizes[1] < sizes[0] else None


def _sources(v: Value, axis: int) -> Mapping[int, int] | None:
    """{operand: axis} of the elements that those of v at one index along an axis are computed of; None where they are
    computed of others too."""
    extent = v.type.shape[axis]
    tile = tile_of(v.node, Range(axis, 0, extent)) if isinstance(extent, int) else None
    return None if tile is None or tile.changes else {k: r.axis for k, r in tile.ranges.items()}


def _leads_to_a_product(v: Value, axis: int, alone: set[Value]) -> bool:
    """Whether a product is computed for this selection alone."""
    pending = [(v, axis)]
    while pending:
        v, axis = pending.pop()
        sources = _sources(v, axis) if v in alone else None
        if sources is not None and isinstance(v.node.op.lower, Call | Contraction):
            return True
        pending += [(v.node.operands[k], a) for k, a in (sources or {}).items()]
    return False


def _selected(v: Value, index: Value, axis: int, alone: set[Value]) -> Value:
    """The elements of v at these indices along an axis."""
    sources = _sources(v, axis) if v in alone else None
    if sources is None:
        return apply("index_select", v, index, dim=axis)
    operands = [
        _selected(u, index, sources[k], alone) if k in sources else u for k, u in enumerate(v.node.operands)
    ]
    return apply(v.node.op.name, *operands, **v.node.attrs)
