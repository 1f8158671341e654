"""Merge concatenations: what is assembled of assembled values is assembled of their parts, so that these need not be
stored beside it.

    entry f(a: f32[2], b: f32[1], c: f32[1])
      %0: f32[3] = assemble(a, b, shape=(3,), starts=((0,), (2,)), steps=((1,), (1,)), fill=0.0)
      %1: f32[4] = assemble(%0, c, shape=(4,), starts=((0,), (3,)), steps=((1,), (1,)), fill=0.0)
      y <- %1
    ->
    entry f(a: f32[2], b: f32[1], c: f32[1])
      %0: f32[4] = assemble(a, b, c, shape=(4,), starts=((0,), (2,), (3,)), steps=((1,), (1,), (1,)), fill=0.0)
      y <- %0
"""

from __future__ import annotations

from ...ir.graph import Graph
from ...ir.node import Node, Value
from ...ir.op_kinds import Assemble
from ...ir.rewrite import rewritten
from ...ir.types import planned_size
from ..context import Context


def merge_concatenations(graph: Graph, context: Context) -> Graph:
    """See the module."""

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...] | None:
        parts = [part for k, v in enumerate(operands) for part in _parts(node, k, v)]
        if len(parts) == len(operands):
            return None
        values, starts, steps = zip(*parts, strict=True)
        attrs = {**node.attrs, "starts": starts, "steps": steps}
        types = tuple([r.type for r in node.results])
        return Node(node.op, values, attrs, types, origin=node.origin).results

    return rewritten(graph, rewrite, graph.of(Assemble))


def _parts(node: Node, k: int, v: Value) -> list[tuple[Value, tuple[int, ...], tuple[int, ...]]]:
    """The parts of operand k of an assembled value, each with its place in the whole."""
    start, step = node.attrs["starts"][k], node.attrs["steps"][k]
    inner = v.node
    if not isinstance(inner.op.lower, Assemble):
        return [(v, start, step)]
    covered = sum(planned_size(u.type.shape) for u in inner.operands) == planned_size(v.type.shape)
    if not covered and inner.attrs["fill"] != node.attrs["fill"]:
        return [(v, start, step)]
    found = []
    for u, starts, steps in zip(inner.operands, inner.attrs["starts"], inner.attrs["steps"], strict=True):
        at = tuple(a + s * b for a, s, b in zip(start, step, starts, strict=True))
        found.append((u, at, tuple(s * t for s, t in zip(step, steps, strict=True))))
    return found
