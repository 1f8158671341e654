"""A pass that is applied to a graph and to the regions inside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ..ir.graph import Graph
from ..ir.node import Node, Region, Value
from ..ir.op_kinds import Cond, Scan
from ..ir.rewrite import rewritten
from .context import Context

Pass: TypeAlias = Callable[[Graph, Context], Graph]


def with_regions(function: Pass, graph: Graph, context: Context) -> Graph:
    """The graph after a pass, which is first applied to the regions of loops and conditions, then to the graph."""

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...] | None:
        regions = tuple([_rewritten(function, region, context) for region in node.regions])
        if all(new is old for new, old in zip(regions, node.regions, strict=True)):
            return None
        return Node(
            node.op, operands, node.attrs, tuple(r.type for r in node.results), regions, node.origin
        ).results

    return function(rewritten(graph, rewrite, graph.of(Scan, Cond)), context)


def _rewritten(function: Pass, region: Region, context: Context) -> Region:
    """The region after the pass; one region for all nodes that have it."""

    def made() -> Region:
        outputs = {str(k): v for k, v in enumerate(region.results)}
        graph = Graph("region", region.params, outputs, inner=True)
        results = tuple(with_regions(function, graph, context).outputs.values())
        return region if results == region.results else Region(region.params, results)

    return context.analysis((function, region.params, region.results), made)
