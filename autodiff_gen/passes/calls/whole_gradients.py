"""Whole gradients: a product that is completed by rows, each of which updates a row of a state, is computed whole where
the arena is not larger with it, as one call of a kernel and one loop take less time.

    entry f(a: f32[4,2], b: f32[2,3])           entry f(a: f32[4,2], b: f32[2,3])
      %0: f32[4,3] = matmul_rows(a, b)            %0: f32[4,3] = matmul(a, b)
      %1: f32[4,3] = square(%0)                   %1: f32[4,3] = square(%0)
      %2: f32[4,3] = add(w, %1)           ->      %2: f32[4,3] = add(w, %1)
      w' <- %2                                    w' <- %2

Where the RAM budget is exceeded, all products stay by rows.
"""

from __future__ import annotations

from collections.abc import Collection

from ...ir.graph import Graph
from ...ir.node import OPS, Node, Value
from ...ir.op_kinds import RowContraction
from ...ir.rewrite import rewritten
from ..arena_use import liveness
from ..context import Context
from ..worth import excess


def whole_gradients(graph: Graph, context: Context) -> Graph:
    """See the module."""
    products = [n for n in graph.of(RowContraction) if _is_of_matrices(n)]
    if graph.inner or not products or context.backends is None or excess(graph, context):
        return graph
    most = liveness(graph, context).peak
    while products:
        found = liveness(with_whole(graph, products), context)
        if found.peak <= most:
            return found.graph
        at_the_peak = {v.node.origin for v in found.at_the_peak}
        if at_the_peak.isdisjoint(n.origin for n in products):
            break
        products = [n for n in products if n.origin not in at_the_peak]
    return graph


def _is_of_matrices(node: Node) -> bool:
    return isinstance(node.op.lower, RowContraction) and node.op.lower.call is None


def with_whole(graph: Graph, products: Collection[Node]) -> Graph:
    """The graph in which one call computes each of these products."""

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...]:
        types = tuple(r.type for r in node.results)
        assert node.op.form is not None
        return Node(OPS[node.op.form.of], operands, node.attrs, types, origin=node.origin).results

    return rewritten(graph, rewrite, products)
