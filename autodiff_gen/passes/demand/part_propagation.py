"""Part propagation: if only parts or sums of a value are read, compute the parts where they are used, and never store
the whole: the gates of a cell, the outputs of several branches.

    entry f(a: f32[1,4], b: f32[1,4], w: f32[2,1])
      %0: f32[2,4] = assemble(a, b, shape=(2, 4), starts=((0, 0), (1, 0)), steps=((1, 1), (1, 1)), fill=0.0)
      %1: f32[2,4] = mul(%0, w)
      %2: f32[4] = sum(%1, axes=(0,), keepdim=False)
      y <- %2
    ->
    entry f(a: f32[1,4], b: f32[1,4], w: f32[2,1])
      %0: f32[1,1] = slice(w, shape=(1, 1), starts=(0, 0), steps=(1, 1))
      %1: f32[1,4] = mul(a, %0)
      %2: f32[4] = reshape(%1, shape=(4,))
      %3: f32[1,1] = slice(w, shape=(1, 1), starts=(1, 0), steps=(1, 1))
      %4: f32[1,4] = mul(b, %3)
      %5: f32[4] = reshape(%4, shape=(4,))
      %6: f32[4] = add(%2, %5)
      y <- %6

Parts do not overlap: nothing is computed twice. Some values are computed whole even if all of their parts are read: a
gradient that can reuse the memory of an operand of the same size, and values that only products read, such as queries,
keys and values. If only some elements along an axis of a product are selected, the product reads only the same elements
of its operands: the gradient of some channels' weights takes their share of the multiply-accumulates and of the image.

Before that, joins of joined values are merged. A sum of values that are zero except in disjoint parts, such as the
gradients of slices of one value, becomes a join of these parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ...errors import ShapeError
from ...ir.graph import Graph
from ...ir.node import Node, Value, inferred
from ...ir.op_kinds import Assemble, Elementwise, View, ViewKind
from ...ir.rewrite import rewritten
from ...ir.traits import view_kind
from ...ir.types import planned_size
from ..context import Context
from .demand_propagation import with_parts

# A part, where it starts, and with which steps.
_Placed: TypeAlias = tuple[Value, tuple[int, ...], tuple[int, ...]]


def part_propagation(graph: Graph, context: Context) -> Graph:
    """See the module."""
    return with_parts(_merged(graph) if graph.of(Assemble) else graph, True)


def _merged(graph: Graph) -> Graph:
    """The graph in which readers use the parts of joined values directly."""
    roots = set(graph.roots)

    def rewrite(node: Node, operands: tuple[Value, ...]) -> Sequence[Value] | None:
        if isinstance(node.op.lower, View):
            place = node.results[0].type.shape, node.attrs["starts"], node.attrs["steps"]
            parts = [p for p in _placed(operands[0]) if (p[0].type.shape, *p[1:]) == place]
            return (parts[0][0],) if parts else None
        if isinstance(node.op.lower, Assemble):
            parts = [p for k, v in enumerate(operands) for p in _within(node, k, v)]
            return None if len(parts) == len(operands) else _joined(node, node, parts)
        a, b = operands
        are_joins = a.type == b.type and roots.isdisjoint(node.operands) and _fill(a) == _fill(b) == 0.0
        return _joined(node, a.node, [*_placed(a), *_placed(b)]) if are_joins else None

    slices = [n for n in graph.of(View) if view_kind(n) is ViewKind.WINDOW]
    sums = [n for n in graph.of(Elementwise) if n.op.signs == (1, 1)]
    return rewritten(graph, rewrite, [*slices, *sums, *graph.of(Assemble)])


def _fill(v: Value) -> float | None:
    return v.node.attrs["fill"] if isinstance(v.node.op.lower, Assemble) else None


def _placed(v: Value) -> list[_Placed]:
    """The parts of a joined value; none of other values."""
    node = v.node
    if not isinstance(node.op.lower, Assemble):
        return []
    return list(zip(node.operands, node.attrs["starts"], node.attrs["steps"], strict=True))


def _within(node: Node, k: int, v: Value) -> list[_Placed]:
    """The parts of operand k of a joined value, with their places in the whole; or only the operand itself."""
    start, step = node.attrs["starts"][k], node.attrs["steps"][k]
    parts = _placed(v)
    is_full = sum(planned_size(u.type.shape) for u, *_ in parts) == planned_size(v.type.shape)
    if not is_full and _fill(v) != node.attrs["fill"]:
        return [(v, start, step)]
    found = []
    for u, starts, steps in parts:
        at = tuple([first + k * s for first, k, s in zip(start, step, starts, strict=True)])
        found.append((u, at, tuple([a * b for a, b in zip(step, steps, strict=True)])))
    return found


def _joined(node: Node, like: Node, parts: Sequence[_Placed]) -> Sequence[Value] | None:
    """The results of a node, joined from these parts with the attributes of `like`; None where parts overlap."""
    operands, starts, steps = zip(*parts, strict=True)
    attrs = {**like.attrs, "starts": starts, "steps": steps}
    try:
        types = inferred(like.op, [v.type for v in operands], attrs)
    except ShapeError:
        return None
    return Node(like.op, operands, attrs, types, origin=node.origin).results
