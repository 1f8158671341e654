"""Accumulate gradients: in a sum of products, such as the gradient of weights that are used several times, each kernel
adds its product to the sum so far, in the memory of the first product.

    entry f(a: f32[4,2], b: f32[2,3], c: f32[4,2], d: f32[2,3])
      %0: f32[4,3] = matmul(a, b)
      %1: f32[4,3] = matmul(c, d)
      %2: f32[4,3] = add(%0, %1)
      %3: f32[4,3] = neg(%2)
      dw <- %3
    ->
    entry f(a: f32[4,2], b: f32[2,3], c: f32[4,2], d: f32[2,3])
      %0: f32[4,3] = matmul(a, b)
      %1: f32[4,3] = accumulate(c, d, %0, 1.0, beta=1.0, negate=False)
      %2: f32[4,3] = neg(%1)
      dw <- %2

The operands of a product, such as an activation and the gradient of the layer's result, are then in memory until the
product is added, not until all products are known. The pass measures the arena first for all sums, then without the
largest sums, and accepts the first graph whose arena does not grow. A sum that is larger than the operands of its
products may make the arena grow, since `fuse_optimizer` completes products by rows, without memory for the whole sum.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...ir.added_terms import added, adding_op
from ...ir.build import with_shape
from ...ir.graph import Graph
from ...ir.node import Node, Value
from ...ir.op_kinds import Elementwise
from ...ir.origin import is_after_loss
from ...ir.rewrite import rewritten
from ...ir.types import f32
from ...ir.views import whole_views
from ..calls.fuse_optimizer import fuse_optimizer
from ..context import Context
from ..profitability import is_worth_its_time, takes_no_more
from ..training.finite_guard import finite_guard

MOST_TRIES = 3  # sizes of sums that are measured: a limit of compile time


def accumulate_gradients(graph: Graph, context: Context) -> Graph:
    """See the module."""
    sums = {} if graph.inner else _sums(graph)
    for most in sorted({n.results[0].type.bytes for n in sums}, reverse=True)[:MOST_TRIES]:
        new = _accumulated(graph, {n: how for n, how in sums.items() if n.results[0].type.bytes <= most})
        if _is_better(new, graph, context):
            return new
    return graph


def _is_better(new: Graph, old: Graph, context: Context) -> bool:
    """Whether the new graph needs no more memory, or is worth its time. Both graphs are compared with their updates
    fused with gradients and guarded. An equal arena is enough: a kernel that accumulates takes less time than a loop
    that adds products."""
    new, old = (finite_guard(fuse_optimizer(g, context), context) for g in (new, old))
    return takes_no_more(new, old, context) or is_worth_its_time(new, old, context)


def _accumulated(graph: Graph, sums: Mapping[Node, tuple[int, int]]) -> Graph:
    """The graph in which these sums are accumulated."""

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...]:
        total, term = (operands[i] for i in sums[node])
        return (with_shape(added(whole_views(term)[-1], total), node.results[0].type.shape),)

    return rewritten(graph, rewrite, sums)


def _sums(graph: Graph) -> dict[Node, tuple[int, int]]:
    """Nodes of the backward pass that add a product to another product, or to the result of such a node. Each has the
    numbers of two operands: the sum so far, and the product that is added."""
    found: dict[Node, tuple[int, int]] = {}

    def alone(v: Value) -> Value | None:
        """The value that v is a view of the whole of, if nothing else reads it."""
        way = whole_views(v)
        return way[-1] if all(len(graph.users[u]) == 1 and u not in roots for u in way) else None

    roots = set(graph.roots)
    outside = {v.base for v in roots}  # these are stored in states, or in the caller's memory
    for node in graph.of(Elementwise):
        (result,) = node.results
        if (
            node.op.signs != (1, 1)
            or not is_after_loss(node.origin)
            or result.type.dtype is not f32
            or result in outside
        ):
            continue
        a, b = node.operands
        whole = [alone(v) for v in (a, b)]
        for total, term in ((0, 1), (1, 0)):
            sum_, product = whole[total], whole[term]
            if sum_ is None or product is None or a.type != b.type or not adding_op(product.node):
                continue
            if adding_op(sum_.node) or sum_.node in found:
                found[node] = total, term
                break
    return found
