"""Fuse elementwise ops, reductions and picks into groups. Each group becomes one loop nest.

    entry f(x: f32[4])             entry f(x: f32[4])
      %0: f32[4] = tanh(x)           %0: f32[4] = fused(x)
      %1: f32[4] = mul(%0, x)  ->        %1: f32[4] = tanh(x)
      y <- %1                            %2: f32[4] = mul(%1, x)
                                         yield %2
                                     y <- %0

The groups come from partition.py; here they become nodes with a region (fused_node.py).
"""

from __future__ import annotations

from ...ir.build import with_shape
from ...ir.graph import Graph
from ...ir.node import Node, Value
from ...ir.op_kinds import View
from ..context import Context
from .fused_node import fused_node
from .partition import partition


def fuse_elementwise(graph: Graph, context: Context) -> Graph:
    """See the module."""
    new: dict[Value, Value] = {}

    def outside(v: Value) -> Value:
        """The value of the new graph for v, views rebuilt."""
        views: list[Node] = []
        while v not in new and isinstance(v.node.op.lower, View):
            views.append(v.node)
            (v,) = v.node.operands
        made = new.setdefault(v, v)  # leaves and free nodes stay as they are
        for node in reversed(views):
            (made,) = node.with_operands((made,)).results
            new[node.results[0]] = made
        return made

    for part in partition(graph, context.cost):
        if part.is_loop:
            node = fused_node(part.nodes, part.stored, outside)
            made = zip(part.stored, node.results, strict=True)
            new.update((r, with_shape(v, r.type.shape)) for r, v in made)
        else:
            (n,) = part.nodes
            node = n.with_operands(tuple(outside(v) for v in n.operands))
            new.update(zip(n.results, node.results, strict=True))
    return graph.with_roots([outside(v) for v in graph.roots])
