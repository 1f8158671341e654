"""Scans give only the stacks that something reads, and take only the operands that what is left needs."""

from __future__ import annotations

from ..ir import Graph, Node, Region, Value, substitute, topological
from ..op import Scan


def drop_unread(graph: Graph) -> Graph:
    """Until nothing changes: a scan that is relieved of operands may leave stacks of another one unread."""
    while True:
        order = topological(graph.roots)
        read = {v for n in order for v in n.operands} | set(graph.roots)
        wasteful = {
            n: keep for n in order if isinstance(n.op.lower, Scan) and (keep := _wanted(n, read)) is not None
        }
        if not wasteful:
            return graph

        def rewrite(
            node: Node,
            operands: tuple[Value, ...],
            wasteful: dict[Node, tuple[list[int], list[int]]] = wasteful,
        ) -> tuple[Value, ...] | None:
            return _narrowed(node, operands, *wasteful[node]) if node in wasteful else None

        graph = graph.with_roots(substitute(graph.roots, rewrite))


def _wanted(node: Node, read: set[Value]) -> tuple[list[int], list[int]] | None:
    """The operands and results to keep; None when all are."""
    (region,), carries = node.regions, node.attrs["carries"]
    results = [i for i, r in enumerate(node.results) if i < carries or r in read]
    used = {v for n in topological([region.results[i] for i in results]) for v in n.operands}
    used |= {region.results[i] for i in results}
    operands = [i for i, v in enumerate(region.params) if i < carries or v in used]
    if len(results) == len(node.results) and len(operands) == len(node.operands):
        return None
    return operands, results


def _narrowed(
    node: Node, operands: tuple[Value, ...], kept: list[int], results: list[int]
) -> tuple[Value, ...]:
    (region,), carries, xs = node.regions, node.attrs["carries"], node.attrs["xs"]
    attrs = {
        **node.attrs,
        "xs": sum(carries <= i < carries + xs for i in kept),
        "axes": tuple(node.attrs["axes"][i - carries] for i in results if i >= carries),
    }
    narrow = Region(tuple(region.params[i] for i in kept), tuple(region.results[i] for i in results))
    types = tuple(node.results[i].type for i in results)
    made = Node(node.op, tuple(operands[i] for i in kept), attrs, types, (narrow,), node.hint)
    out = list(node.results)  # what stands for the others is never looked at
    for i, r in zip(results, made.results, strict=True):
        out[i] = r
    return tuple(out)
