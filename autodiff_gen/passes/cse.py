"""Common subexpression elimination: the same op on the same operands with the same attributes is computed once.

    entry f(x: f32[4])              entry f(x: f32[4])
      %0: f32[4] = tanh(x)            %0: f32[4] = tanh(x)
      %1: f32[4] = tanh(x)      ->    %1: f32[4] = mul(%0, %0)
      %2: f32[4] = mul(%0, %1)        y <- %1
      y <- %2

A reduction with several results of which only the first is read becomes the plain one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.build import apply
from ..ir.graph import Graph
from ..ir.node import CONST, OPS, Node, Value
from ..ir.op_kinds import Leaf, Reduce
from ..ir.rewrite import rewritten
from .context import Context


def _key(attr: Any) -> Any:
    return (attr.dtype.str, attr.shape, attr.tobytes()) if isinstance(attr, np.ndarray) else attr


def key_of(node: Node, operands: tuple[Any, ...], alone: str | None = None) -> Any:
    """Equal for nodes that compute the same, where equal `operands` are the same values; `alone`: the op instead."""
    if isinstance(node.op.lower, Leaf) and node.op is not CONST:
        return node
    attrs = tuple([(k, _key(a)) for k, a in sorted(node.attrs.items()) if k != "exact"]) if node.attrs else ()
    types = tuple([(r.type.dtype, r.type.shape) for r in node.results])
    return OPS[alone] if alone else node.op, operands, attrs, node.regions, types


def cse(graph: Graph, context: Context) -> Graph:
    """Values that nothing needs are gone as well, since graphs are traversed from their roots."""
    known: dict[Any, tuple[Value, ...]] = {}
    read = {v for n in graph.nodes for v in n.operands} | set(graph.roots)

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...]:
        alone = node.op.lower.alone if isinstance(node.op.lower, Reduce) else None
        alone = alone if read.isdisjoint(node.results[1:]) else None
        key = key_of(node, operands, alone)
        if key in known:
            return known[key]
        if alone is not None:  # nothing reads the other results
            known[key] = (apply(alone, *operands, **node.attrs), *node.results[1:])
        else:
            known[key] = node.with_operands(operands).results
        return known[key]

    computed = (n for n in graph.nodes if n.op is CONST or not isinstance(n.op.lower, Leaf))
    return rewritten(graph, rewrite, computed)
