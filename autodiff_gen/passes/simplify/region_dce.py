"""Dead-code elimination of regions: scan and cond return only the results that something reads, and take only the
operands that the remaining ones need.

    entry f(h: f32[4], x: f32[9,4])
      %0: f32[4], %1: f32[9,4] = scan(h, x, length=9, carries=1, xs=1, axes=(0,), reverse=False)
          with %2 h_t: f32[4], %3 x_t: f32[4]
          %4: f32[4] = add(%2, %3)
          %5: f32[4] = tanh(%4)
          yield %4, %5
      y <- %0
    ->
    entry f(h: f32[4], x: f32[9,4])
      %0: f32[4] = scan(h, x, length=9, carries=1, xs=1, axes=(), reverse=False)
          with %1 h_t: f32[4], %2 x_t: f32[4]
          %3: f32[4] = add(%1, %2)
          yield %3
      y <- %0
"""

from __future__ import annotations

from dataclasses import replace

from ...ir.graph import Graph
from ...ir.node import Node, Region, Value, topological
from ...ir.op_kinds import Cond, Scan
from ...ir.origin import Origin
from ...ir.rewrite import rewritten
from ..context import Context


def region_dce(graph: Graph, context: Context) -> Graph:
    """See the module. The pass repeats until nothing changes: a scan that loses operands may leave stacks of another
    scan without readers."""
    while True:
        regions = graph.of(Scan, Cond)
        read = {v for n in graph.nodes for v in n.operands} | set(graph.roots) if regions else set()
        wasteful = {n: keep for n in regions if (keep := _wanted(n, read)) is not None}
        if not wasteful:
            return graph

        def rewrite(
            node: Node,
            operands: tuple[Value, ...],
            wasteful: dict[Node, tuple[list[int], list[int]]] = wasteful,
        ) -> tuple[Value, ...]:
            return _narrowed(node, operands, *wasteful[node])

        graph = rewritten(graph, rewrite, wasteful)


def _wanted(node: Node, read: set[Value]) -> tuple[list[int], list[int]] | None:
    """The operands and results to keep; None when all are kept. Carries and the choice of a cond are always
    kept."""
    first, kept = _spared(node)
    results = [i for i, r in enumerate(node.results) if i < kept or r in read]
    used: set[Value] = set()
    for region in node.regions:
        ends = [region.results[i] for i in results]
        used.update(ends, *(n.operands for n in topological(ends)))
    params = [[region.params[i - first] for region in node.regions] for i in range(first, len(node.operands))]
    operands = [
        *range(first),
        *(i for i, each in enumerate(params, first) if i < kept or not used.isdisjoint(each)),
    ]
    if len(results) == len(node.results) and len(operands) == len(node.operands):
        return None
    return operands, results


def _spared(node: Node) -> tuple[int, int]:
    """How many operands have no param, and how many operands and results are always kept."""
    return (0, node.attrs["carries"]) if isinstance(node.op.lower, Scan) else (1, 0)


def _narrowed(
    node: Node, operands: tuple[Value, ...], kept: list[int], results: list[int]
) -> tuple[Value, ...]:
    first, _ = _spared(node)
    attrs = dict(node.attrs)
    if isinstance(node.op.lower, Scan):
        carries, xs = attrs["carries"], attrs["xs"]
        attrs["xs"] = sum(carries <= i < carries + xs for i in kept)
        attrs["axes"] = tuple(attrs["axes"][i - carries] for i in results if i >= carries)
    regions = tuple(
        Region(tuple(r.params[i - first] for i in kept[first:]), tuple(r.results[i] for i in results))
        for r in node.regions
    )
    types = tuple(node.results[i].type for i in results)
    origin = _renumbered(node.origin, results)
    made = Node(node.op, tuple(operands[i] for i in kept), attrs, types, regions, origin)
    out = list(node.results)  # nothing reads the others
    for i, r in zip(results, made.results, strict=True):
        out[i] = r
    return tuple(out)


def _renumbered(origin: Origin, results: list[int]) -> Origin:
    """The origin of a node that has only these results of another node: each keeps its label."""
    labels = {k: origin.labels[i] for k, i in enumerate(results) if i in origin.labels}
    return origin if labels == origin.labels else replace(origin, labels=labels)
