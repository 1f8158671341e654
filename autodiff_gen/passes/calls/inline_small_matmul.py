"""Inline small products as sums, which fuse into loops: a call of a kernel would cost more than its work, and the bias,
the activation and the update join the loop nest.

    entry f(a: f32[2,3], b: f32[3,4])      entry f(a: f32[2,3], b: f32[3,4])
      %0: f32[2,4] = matmul(a, b)            %0: f32[2,3,1] = reshape(a, shape=(2, 3, 1))
      y <- %0                          ->    %1: f32[1,3,4] = reshape(b, shape=(1, 3, 4))
                                             %2: f32[2,3,4] = mul(%0, %1)
                                             %3: f32[2,4] = sum(%2, axes=(1,), keepdim=False)
                                             y <- %3
"""

from __future__ import annotations

from ...ir.build import apply
from ...ir.graph import Graph
from ...ir.node import Node, Value
from ...ir.op_kinds import Contraction
from ...ir.rewrite import rewritten
from ...ir.strides import dense
from ...ir.traits import is_plain_product
from ...ir.types import planned_size
from ...ir.views import layout
from ..context import Context
from ..costs import product_is_inlined

# Elements of an outer product that is inlined. The same on every core: ger rounds (alpha x) y, loops alpha (x y), and
# `ref` has the same bits everywhere.
LARGEST_OUTER = 256


def inline_small_matmul(graph: Graph, context: Context) -> Graph:
    """See the module."""

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...] | None:
        if not is_plain_product(node) or len(node.results[0].type.shape) != 2:
            return None
        a, b = operands
        m, k = a.type.shape
        n = b.type.shape[1]
        if k == 1:
            small = planned_size((m, n)) <= LARGEST_OUTER
            return (apply("mul", a, b),) if small else None
        by_rows = (layout(a) or dense(a.type.shape)).strides[1] == 1
        if not product_is_inlined(context.cost, m, k, n, by_rows):
            return None
        each = apply("mul", apply("reshape", a, shape=(m, k, 1)), apply("reshape", b, shape=(1, k, n)))
        total = apply("sum", each, axes=(1,), keepdim=False)
        return (total,)

    return rewritten(graph, rewrite, graph.of(Contraction))
