"""Whole gradients: one call computes a gradient that would be completed by rows, where the arena is not larger with it.
One call and one loop take less time.

    entry f(a: f32[4,2], b: f32[2,3])           entry f(a: f32[4,2], b: f32[2,3])
      %0: f32[4,3] = matmul_rows(a, b)            %0: f32[4,3] = matmul(a, b)
      %1: f32[4,3] = square(%0)                   %1: f32[4,3] = square(%0)
      %2: f32[4,3] = add(w, %1)           ->      %2: f32[4,3] = add(w, %1)
      w' <- %2                                    w' <- %2

Where the RAM budget is exceeded, gradients that are completed by rows stay so; gradients that are no larger than dy are
not completed by rows (`gradient_rows`).
"""

from __future__ import annotations

from collections.abc import Collection

from ...ir.graph import Graph
from ...ir.node import Node, Value
from ...ir.op_kinds import RowContraction
from ...ir.origin import building_as
from ...ir.rewrite import rewritten
from ...ir.traits import in_one_call
from ..arena_use import liveness
from ..context import Context
from ..profitability import excess


def whole_gradients(graph: Graph, context: Context) -> Graph:
    """See the module."""
    gradients = list(graph.of(RowContraction))
    if graph.inner or not gradients or context.backends is None or excess(graph, context):
        return graph
    most = liveness(graph, context).peak
    while gradients:
        found = liveness(with_whole(graph, gradients), context)
        if found.peak <= most:
            return found.graph
        at_the_peak = {v.node.origin for v in found.at_the_peak}
        fewer = [n for n in gradients if n.origin not in at_the_peak]
        if len(fewer) == len(gradients):  # the steps have another order
            fewer.remove(max(fewer, key=lambda n: n.results[0].type.bytes))
        gradients = fewer
    return graph


def with_whole(graph: Graph, gradients: Collection[Node]) -> Graph:
    """The graph in which one call computes each of these gradients."""

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...]:
        origin = node.origin
        with building_as(origin):
            made = in_one_call(node, operands)
        made.base.node.origin = origin
        return (made,)

    return rewritten(graph, rewrite, gradients)
