"""Merge gradients of slices: the sum of gradients of disjoint parts of one value is assembled from them, so that no
zeros are stored and added.

    entry f(a: f32[2], b: f32[2])
      %0: f32[4] = assemble(a, shape=(4,), starts=((0,),), steps=((1,),), fill=0.0)
      %1: f32[4] = assemble(b, shape=(4,), starts=((2,),), steps=((1,),), fill=0.0)
      %2: f32[4] = add(%0, %1)
      y <- %2
    ->
    entry f(a: f32[2], b: f32[2])
      %0: f32[4] = assemble(a, b, shape=(4,), starts=((0,), (2,)), steps=((1,), (1,)), fill=0.0)
      y <- %0

A slice that reads exactly one part of an assembled value becomes that part.
"""

from __future__ import annotations

from ...errors import ShapeError
from ...ir.graph import Graph
from ...ir.node import Node, Value
from ...ir.op_kinds import Assemble, Elementwise, View, ViewKind
from ...ir.origin import Origin
from ...ir.rewrite import rewritten
from ...ir.traits import view_kind
from ..context import Context


def merge_slice_gradients(graph: Graph, context: Context) -> Graph:
    """See the module."""
    if not graph.of(Assemble):
        return graph
    roots = set(graph.roots)

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...] | None:
        if isinstance(node.op.lower, View):
            part = _part(operands[0].node, node)
            return None if part is None else (part,)
        if any(v in roots for v in node.operands):
            return None
        joined = _joined(operands[0], operands[1], node.origin)
        return None if joined is None else (joined,)

    slices = [n for n in graph.of(View) if view_kind(n) is ViewKind.WINDOW]
    return rewritten(graph, rewrite, [*slices, *(n for n in graph.of(Elementwise) if n.op.signs == (1, 1))])


def _part(assembled: Node, window: Node) -> Value | None:
    """The operand of `assembled` whose elements are exactly those that `window` reads."""
    if isinstance(assembled.op.lower, Assemble):
        parts = zip(assembled.operands, assembled.attrs["starts"], assembled.attrs["steps"], strict=True)
        for v, starts, steps in parts:
            if (v.type.shape, starts, steps) == (
                window.results[0].type.shape,
                window.attrs["starts"],
                window.attrs["steps"],
            ):
                return v
    return None


def _joined(a: Value, b: Value, origin: Origin) -> Value | None:
    """a + b where both are zero but for windows that do not overlap."""
    if a.type != b.type or not all(
        isinstance(v.node.op.lower, Assemble) and v.node.attrs["fill"] == 0.0 for v in (a, b)
    ):
        return None
    first, second = a.node, b.node
    attrs = {
        **first.attrs,
        "starts": first.attrs["starts"] + second.attrs["starts"],
        "steps": first.attrs["steps"] + second.attrs["steps"],
    }
    operands = (*first.operands, *second.operands)
    try:
        y = first.op.infer(*(v.type for v in operands), **attrs)
    except ShapeError:  # they overlap
        return None
    assert not isinstance(y, tuple)
    return Node(first.op, operands, attrs, (y,), origin=origin).results[0]
