"""Rewriting: a graph below some roots with other nodes or values in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from .graph import Graph
from .names import adopt
from .node import Node, Value, topological
from .origin import building

Rewrite: TypeAlias = Callable[[Node, tuple[Value, ...]], Sequence[Value] | None]
"""Gives a node's new results, from the node and its new operands, or None to keep it as it is."""


def rewritten(graph: Graph, rewrite: Rewrite) -> Graph:
    """The graph with every node rewritten."""
    return graph.with_roots(_substituted(graph.roots, graph.nodes, rewrite))


def substitute(roots: Sequence[Value], rewrite: Rewrite) -> list[Value]:
    """The roots in a graph with every node below them rewritten."""
    return _substituted(roots, topological(roots), rewrite)


def _substituted(roots: Sequence[Value], nodes: Sequence[Node], rewrite: Rewrite) -> list[Value]:
    """What takes the place of a value gets its name."""
    mapping: dict[Value, Value] = {}  # of values that are replaced
    with building() as here:
        for node in nodes:
            operands = node.operands
            if not mapping.keys().isdisjoint(operands):
                operands = tuple([mapping.get(v, v) for v in operands])
            here.scope, here.phase = node.origin.scope, node.origin.phase
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
    """The graph below `roots` with other values in place of the keys of `mapping`; what does not depend on
    them stays as it is.
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
