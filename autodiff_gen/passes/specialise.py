"""Ops that differ between training and evaluation carry `train=`; each entry settles it."""

from __future__ import annotations

from ..ir import Graph, Node, Value, substitute


def specialise(graph: Graph) -> Graph:
    """Set `train` to whether this entry updates state."""
    training = bool(graph.updates)

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...] | None:
        if node.attrs.get("train", training) == training:
            return None
        types = tuple(r.type for r in node.results)
        return Node(
            node.op, operands, {**node.attrs, "train": training}, types, node.regions, node.hint
        ).results

    return graph.with_roots(substitute(graph.roots, rewrite))
