"""Rewriting: a graph below some roots with other nodes or values in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import TypeAlias

from .graph import Graph
from .names import adopt
from .node import Node, Value, topological
from .origin import building

Rewrite: TypeAlias = Callable[[Node, tuple[Value, ...]], Sequence[Value] | None]
"""Gives a node's new results, from the node and its new operands, or None to keep it as it is."""


def rewritten(graph: Graph, rewrite: Rewrite, among: Iterable[Node]) -> Graph:
    """The graph with these nodes of it rewritten."""
    chosen = frozenset(among)
    return graph.with_roots(_substituted(graph.roots, graph.nodes, rewrite, chosen)) if chosen else graph


def substitute(roots: Sequence[Value], rewrite: Rewrite) -> list[Value]:
    """The roots in a graph with every node below them rewritten."""
    nodes = topological(roots)
    return _substituted(roots, nodes, rewrite, frozenset(nodes))


def _substituted(
    roots: Sequence[Value], nodes: Iterable[Node], rewrite: Rewrite, chosen: Set[Node]
) -> list[Value]:
    """The roots with the nodes of `chosen` rewritten, and the nodes that read their results. nodes: all nodes below the
    roots, operands first. A value that replaces another one gets its name."""
    mapping: dict[Value, Value] = {}  # of values that are replaced
    replaced = mapping.keys()
    with building() as here:
        for node in nodes:
            operands, results = node.operands, None
            if not replaced.isdisjoint(operands):
                operands = tuple([mapping.get(v, v) for v in operands])
            if node in chosen:
                at = node.origin
                here.scope, here.phase, here.call = at.scope, at.phase, at.call
                results = rewrite(node, operands)
            if results is None:
                if operands is node.operands:
                    continue
                results = node.with_operands(operands).results
            for old, new in zip(node.results, results, strict=True):
                if new is not old:
                    mapping[old] = new
                    if new.node.origin is not old.node.origin:
                        adopt(new, old)
    return [mapping.get(v, v) for v in roots]


def replaced(roots: Sequence[Value], mapping: Mapping[Value, Value]) -> list[Value]:
    """The graph below `roots` with other values in place of the keys of `mapping`; values that do not depend on them
    stay.
    """
    new = dict(mapping)
    for node in topological(roots, stop=lambda n: all(r in new for r in n.results)):
        if new.keys().isdisjoint(node.operands) or new.keys() >= {*node.results}:
            continue
        operands = tuple([new.get(v, v) for v in node.operands])
        if operands != node.operands:
            for old, fresh in zip(node.results, node.with_operands(operands).results, strict=True):
                new.setdefault(old, fresh)
    return [new.get(v, v) for v in roots]
