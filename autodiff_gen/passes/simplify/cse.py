"""Common subexpression elimination: the same op on the same operands with the same attributes is computed once.

    entry f(x: f32[4])              entry f(x: f32[4])
      %0: f32[4] = tanh(x)            %0: f32[4] = tanh(x)
      %1: f32[4] = tanh(x)      ->    %1: f32[4] = mul(%0, %0)
      %2: f32[4] = mul(%0, %1)        y <- %1
      y <- %2

A reduction with several results becomes the plain reduction if only the first result is read. A sum that keeps its axes
and a sum that does not are computed once, too: the second one is a reshape.
"""

from __future__ import annotations

from ...ir.build import apply, with_shape
from ...ir.graph import Graph
from ...ir.node import CONST, Node, Value, in_form
from ...ir.op_forms import FirstResultOnly
from ...ir.op_kinds import Leaf, Reduce
from ...ir.rewrite import rewritten
from ...ir.traits import key_of
from ..context import Context
from .equal_constants import equal_constants


def cse(graph: Graph, context: Context) -> Graph:
    """See the module. Values that no root needs disappear too, since graphs are traversed from their roots."""
    known = equal_constants(graph)
    read = {v for n in graph.nodes for v in n.operands} | set(graph.roots)

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...]:
        is_plain = isinstance(node.op.lower, Reduce) and read.isdisjoint(node.results[1:])
        first = in_form(node.op, FirstResultOnly) if is_plain else None
        key = key_of(node, operands, first)
        if key in known:
            return known[key]
        if "keepdim" in node.attrs and len(node.results) == 1:
            other = apply(node.op.name, *operands, **{**node.attrs, "keepdim": not node.attrs["keepdim"]})
            same = known.get(key_of(other.node, operands))
            if same is not None:
                known[key] = (with_shape(same[0], node.results[0].type.shape),)
                return known[key]
        if first is not None:  # nothing reads the other results
            known[key] = (apply(first.name, *operands, **node.attrs), *node.results[1:])
        else:
            known[key] = node.with_operands(operands).results
        return known[key]

    computed = (n for n in graph.nodes if n.op is CONST or not isinstance(n.op.lower, Leaf))
    return rewritten(graph, rewrite, computed)
