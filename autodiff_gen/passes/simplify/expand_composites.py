"""Expand composite ops, which exist for their gradients, into the ops that loops and kernels compute.

    entry f(x: f32[2,8])
      %0: f32[2,8], %1: f32[2,1], %2: f32[2,1], %3: f32[2,1] = standardize(x, axes=(1,), eps=1e-05)
      y <- %1
    ->
    entry f(x: f32[2,8])
      %0: f32[2,1] = slice(x, shape=(2, 1), starts=(0, 0), steps=(1, 1))
      %1: f32[2,8] = sub(x, %0)
      %2: f32[2] = sum(%1, axes=(1,), keepdim=False)
      %3: f32[2,1] = reshape(%2, shape=(2, 1))
      %4: f32[2,1] = mul(%3, 0.125)
      %5: f32[2,1] = add(%0, %4)
      y <- %5

By then, permutes have propagated through each composite op as through one elementwise op, and gradients are known.
"""

from __future__ import annotations

from typing import Any

from ...ir.graph import Graph
from ...ir.node import Node, Value
from ...ir.op_kinds import Composite
from ...ir.origin import FunctionCall, building
from ...ir.rewrite import rewritten
from ..context import Context


def expand_composites(graph: Graph, context: Context) -> Graph:
    """See the module."""

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...]:
        assert isinstance(node.op.lower, Composite)
        given: dict[str, Any] = {str(k): v for k, v in enumerate(operands)} | dict(node.attrs)
        axes = given.get("axes", ())
        given |= {"axes": axes[0]} if len(axes) == 1 else {}  # softmax(x, 1)
        positional = (*map(str, range(len(operands))), "axes")
        call = FunctionCall(node.op.name, node.origin.call, given, positional)
        with building(call=call):
            results = tuple(node.op.lower.expand(operands, node.attrs))
        returned = node.origin.result_of
        arguments = () if returned is None else [v for v in returned.given.values() if isinstance(v, Value)]
        if returned is None or len(arguments) == len(operands):  # the op knows axes as they are stored
            returned = call
        results[0].base.node.origin.result_of = returned
        return results

    return rewritten(graph, rewrite, graph.of(Composite))
