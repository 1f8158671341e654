"""Share the function that an activation calls with other values that call it too, most often with the gradient.

    entry f(x: f32[4])              entry f(x: f32[4])
      %0: f32[4] = silu(x)            %0: f32[4] = sigmoid(x)
      %1: f32[4] = sigmoid(x)   ->    %1: f32[4] = mul(x, %0)
      %2: f32[4] = mul(%0, %1)        %2: f32[4] = sigmoid(x)
      y <- %2                         %3: f32[4] = mul(%1, %2)
                                      y <- %3

Common subexpression elimination, which follows, then computes the function once. Compilers do not: on cores without
vectors these functions have branches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.graph import Graph
from ...ir.names import with_role
from ...ir.node import Node, Value, topological
from ...ir.op_kinds import Elementwise
from ...ir.rewrite import rewritten
from ...ir.traits import key_of
from ..context import Context


class _Numbering:
    """Equal numbers for values that the same ops compute from the same operands."""

    def __init__(self, graph: Graph) -> None:
        self._of: dict[Value, int] = {}
        self._known: dict[Any, int] = {}
        for node in graph.nodes:
            key = self._key(node)
            first = self._known.setdefault(key, len(self._of))
            self._of.update((r, first + i) for i, r in enumerate(node.results))

    def _key(self, node: Node) -> Any:
        return key_of(node, tuple([self._of.get(v) for v in node.operands]))

    def has(self, node: Node) -> bool:
        """Whether the graph has an equal node: the results then get the same numbers. The operands must have numbers if
        they have equals in the graph."""
        found = self._known.get(self._key(node))
        if found is not None:
            self._of.update((r, found + i) for i, r in enumerate(node.results))
        return found is not None


def share_functions(graph: Graph, context: Context) -> Graph:
    """See the module."""
    candidates = [
        n for n in graph.of(Elementwise) if isinstance(n.op.lower, Elementwise) and n.op.lower.expand
    ]
    if not candidates:
        return graph
    numbers = _Numbering(graph)
    chosen = {n for n in candidates if _calls_known(n, numbers)}

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...]:
        made = tuple(_expanded(node, operands))
        for old, new in zip(node.results, made, strict=True):
            if old.index not in node.origin.labels:
                with_role(new, node.op.name)
        return made

    return rewritten(graph, rewrite, chosen)


def _expanded(node: Node, operands: tuple[Value, ...]) -> Sequence[Value]:
    lower = node.op.lower
    assert isinstance(lower, Elementwise) and lower.expand is not None
    return lower.expand(operands, node.attrs)


def _calls_known(node: Node, numbers: _Numbering) -> bool:
    """Whether the graph computes a function that the expansion of this node calls."""
    below = {v.node for v in node.operands}
    for inner in topological(_expanded(node, node.operands), stop=lambda n: n in below):
        lower = inner.op.lower
        if inner not in below and numbers.has(inner) and isinstance(lower, Elementwise) and lower.calls:
            return True
    return False
