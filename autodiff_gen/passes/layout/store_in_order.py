"""Store products and assembled values in the order in which they are read.

    entry f(a: f32[4,3], b: f32[3,2])
      %0: f32[4,2] = matmul(a, b)
      %1: f32[2,4] = permute(%0, dims=(1, 0))
      %2: f32[8] = reshape(%1, shape=(8,))
      %3: f32[8] = exp(%2)
      y <- %3
    ->
    entry f(a: f32[4,3], b: f32[3,2])
      %0: f32[2,3] = permute(b, dims=(1, 0))
      %1: f32[3,4] = permute(a, dims=(1, 0))
      %2: f32[2,4] = matmul_placed(%0, %1, layout=Strided(shape=(2, 4), strides=(4, 1), offset=0), of='')
      %3: f32[4,2] = permute(%2, dims=(1, 0))
      %4: f32[2,4] = permute(%3, dims=(1, 0))
      %5: f32[8] = reshape(%4, shape=(8,))
      %6: f32[8] = exp(%5)
      y <- %6

- A product of which a reshape reads nothing but a permute is stored in the order of the permute, so that the reshape
  needs no copy. So is one of which a loop would read columns, where it reads rows in wide vectors.
- What is assembled to be stored with a layout, as in a loop, is assembled there.

Kernels write with any leading dimension: a product can be stored in an order in which its rows or its columns stay
contiguous.
"""

from __future__ import annotations

from ...ir.graph import Graph
from ...ir.node import Node, Value, in_form
from ...ir.op_forms import Placed
from ...ir.op_kinds import Assemble, Elementwise, View
from ...ir.rewrite import rewritten
from ...ir.strides import Strided, dense
from ...ir.traits import is_plain_product
from ...ir.types import Dim, Type, planned_size
from ...ir.views import layout
from ...ops.products.contraction import transposed
from ..context import Context
from ..costs import has_wide_vectors
from .readable_operands import has_gaps


def store_in_order(graph: Graph, context: Context) -> Graph:
    """See the module."""
    return _with_parts_in_order(_with_products_in_order(graph, context))


def _with_products_in_order(graph: Graph, context: Context) -> Graph:
    """Where a reshape does not line up with a permute of a product that nothing else reads, or loops over wide vectors
    would read columns of it, the product is stored in the order of the permute, if its rows or its columns stay
    contiguous: kernels write with any leading dimension."""
    readers, roots = graph.users, graph.homes
    views = [n.operands[0] for n in graph.of(View) if layout(n.results[0]) is None]
    if context.backends is not None and has_wide_vectors(context.cost):
        views += [v for n in graph.of(Elementwise, Assemble) for v in n.operands if _has_far_columns(v)]
    orders: dict[Node, tuple[int, ...]] = {}
    for v in views:
        if not is_plain_product(v.base.node) or v.base in roots:
            continue
        steps, at, alone = _steps_of_order(v), v, True
        while at is not v.base:
            at = at.node.operands[0]
            alone = alone and len(readers[at]) == 1
        if steps is not None and alone:
            orders[v.base.node] = steps

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...] | None:
        steps, y, (a, b) = orders[node], node.results[0].type, operands
        columns = y.shape[-1] == 1 or steps[-1] == 1
        if not columns:
            a, b, steps = transposed(b), transposed(a), (*steps[:-2], steps[-1], steps[-2])
        shape = (*a.type.shape[:-1], b.type.shape[-1])
        placed = in_form(node.op, Placed)
        assert placed is not None
        attrs = {"layout": Strided(shape, steps), "of": ""}
        made = Node(placed, (a, b), attrs, (Type(y.dtype, shape),), origin=node.origin).results[0]
        return (made if columns else transposed(made),)

    return rewritten(graph, rewrite, orders)


def _with_parts_in_order(graph: Graph) -> Graph:
    """What is assembled only to be stored with a layout is assembled there."""
    readers, roots = graph.users, graph.homes

    def assembled(node: Node) -> Node | None:
        v = node.operands[0]
        alone = "layout" in node.attrs and v not in roots and len(readers[v]) == 1
        is_assembled = isinstance(v.node.op.lower, Assemble) and in_form(v.node.op, Placed) is not None
        return v.node if alone and is_assembled else None

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...]:
        parts = operands[0].node
        placed = in_form(parts.op, Placed)
        assert placed is not None
        attrs = {**parts.attrs, **node.attrs}
        types = tuple([r.type for r in node.results])
        return Node(placed, parts.operands, attrs, types, origin=parts.origin).results

    return rewritten(graph, rewrite, [n for n in graph.of(Elementwise) if assembled(n) is not None])


def _has_far_columns(v: Value) -> bool:
    """Whether v is a view whose elements along the last axis are apart in memory."""
    return v is not v.base and layout(v) is not None and has_gaps(v)


def _steps_of_order(v: Value) -> tuple[int, ...] | None:
    """The strides of the product of which v shows all elements, if it is stored in the order of v; None where an axis
    of v is not whole axes of the product, or neither rows nor columns of the product would be contiguous."""
    at, shape = layout(v), v.base.type.shape
    if at is None:
        return None
    axes = {step: i for i, (step, d) in enumerate(zip(dense(shape).strides, shape, strict=True)) if d != 1}
    steps: dict[int, int] = {}
    for rest, old, new in zip(at.shape, at.strides, dense(at.shape).strides, strict=True):
        while rest != 1:
            i = axes.pop(old, -1)
            d = shape[i]
            if i < 0 or (rest != d and (isinstance(d, Dim) or planned_size((rest,)) % d)):
                return None
            steps[i] = new
            rest = 1 if isinstance(d, Dim) else rest // d
            old, new = (step * planned_size((d,)) for step in (old, new))
    found = tuple(steps.get(i, 1) for i in range(len(shape)))
    return None if axes or 1 not in found[-2:] else found
