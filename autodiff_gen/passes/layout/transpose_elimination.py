"""Transpose elimination: two permutes in a row compose, and the transpose of a product becomes transposes of its
factors, which kernels read with any stride.

    entry f(a: f32[2,3], b: f32[3,4])              entry f(a: f32[2,3], b: f32[3,4])
      %0: f32[2,4] = matmul(a, b)                    %0: f32[4,3] = permute(b, dims=(1, 0))
      %1: f32[4,2] = permute(%0, dims=(1, 0))  ->    %1: f32[3,2] = permute(a, dims=(1, 0))
      y <- %1                                        %2: f32[4,2] = matmul(%0, %1)
                                                     y <- %2

In a function with kernels that need dense operands permutes propagate first, as they do in a model before it is
differentiated; a function with updates is left as it is, since fuse_optimizer looks for products right at the update.
"""

from __future__ import annotations

from ...ir.build import apply
from ...ir.graph import Graph
from ...ir.node import Node, Value
from ...ir.op_kinds import View, ViewKind
from ...ir.rewrite import rewritten
from ...ir.traits import is_plain_product, view_kind
from ...ops.products.contraction import transposed
from ..context import Context
from .layout_assignment import needs_dense, propagated


def _is_permute(node: Node) -> bool:
    return view_kind(node) is ViewKind.PERMUTE


def _swaps_last_two(node: Node) -> bool:
    dims = tuple(node.attrs["dims"])
    rank = len(dims)
    return rank >= 2 and dims == (*range(rank - 2), rank - 1, rank - 2)


def _permuted(v: Value, dims: tuple[int, ...]) -> Value:
    """permute(v), composed with a permute that v already is, and dropped when it is the identity."""
    if _is_permute(v.node):
        inner = v.node.attrs["dims"]
        return _permuted(v.node.operands[0], tuple(inner[i] for i in dims))
    return v if dims == tuple(range(len(dims))) else apply("permute", v, dims=dims)


def transpose_elimination(graph: Graph, context: Context) -> Graph:
    """(a . b)' = b' . a'; a product that is also read untransposed keeps its form, and the transpose stays a
    view.
    """
    if not graph.updates and needs_dense(graph.roots):
        graph = graph.with_roots(propagated(graph.roots, may_store=False).roots)
    readers = graph.users
    roots = set(graph.roots)

    def only_transposed(product: Value) -> bool:
        return product not in roots and all(
            _is_permute(n) and _swaps_last_two(n) for n in readers.get(product, ())
        )

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...] | None:
        source = operands[0]
        if is_plain_product(source.node) and _swaps_last_two(node) and only_transposed(node.operands[0]):
            a, b = (_composed(transposed(v)) for v in source.node.operands)
            return (apply("matmul", b, a),)
        dims = tuple(node.attrs["dims"])
        changes = _is_permute(source.node) or dims == tuple(range(len(dims)))
        return (_permuted(source, dims),) if changes else None

    return rewritten(graph, rewrite, filter(_is_permute, graph.of(View)))


def _composed(v: Value) -> Value:
    return _permuted(v.node.operands[0], tuple(v.node.attrs["dims"]))
