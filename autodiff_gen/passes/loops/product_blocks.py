"""Blocks of a product that an elementwise rule consumes, such as a weight gradient that Adam's update reads:

    for i in 64:                                     for i0 in 0, 4, ... 60:
        p[6] = row i of a . b               ->           p[4, 6] = rows i0 to i0 + 3 of a . b
        for j in 6: w[i, j] += f(p[j])                   for i in i0 ... i0 + 3:
                                                             for j in 6: w[i, j] += f(p[i - i0, j])

A kernel keeps the sums of a tile of several rows and columns in registers. A block of few columns of several rows takes
no more memory than a long row.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.node import Value
from ...ir.op_kinds import RowContraction
from ...ir.strides import Strided
from ...ir.views import known_layout
from ..calls.kernel_calls import rows_at_once
from ..context import Context
from ..costs import block_of_a_product
from .loop_nest import LoopNest
from .nesting import Body, Root, RootStep, Scratch


def block_products(nest: LoopNest, operands: Sequence[Value], context: Context) -> LoopNest:
    """The nest, with products by blocks where these take less than products by rows; `operands`: of its node."""
    for root in nest.roots.values():
        if root.in_memory_only and root.node.results[0] in nest.scratch:
            factors = [known_layout(operands[nest.region.params.index(v)]) for v in root.node.operands]
            _block(root, nest, factors, context)
    return nest


def _block(root: Root, nest: LoopNest, factors: Sequence[Strided], context: Context) -> None:
    (v,) = root.node.results
    (row, column), loop = nest.labels.of[v], root.inner
    if loop.axis is None or loop.axis != row or loop.of is not None or loop.parent is None:
        return
    product, inner = loop.items[0], loop.items[-1]
    if len(loop.items) != 2 or not isinstance(product, RootStep) or not isinstance(inner, Body):
        return
    steps = [item for item in inner.items if isinstance(item, RootStep)]
    if (
        inner.axis != column
        or inner.of is not None
        or len(steps) != len(inner.items)
        or inner in nest.row_loops
    ):
        return
    extents = loop.extent, inner.extent
    a, lower = factors[0], root.node.op.lower
    if not isinstance(extents[0], int) or not isinstance(extents[1], int) or 1 not in a.strides:
        return
    assert isinstance(lower, RowContraction)
    counts = [] if lower.call is None else rows_at_once(root.node, factors, context.backends)
    gathered = lower.call is None and a.strides[1] != 1
    shape = block_of_a_product(nest.cost, extents[0], a.shape[1], extents[1], gathered, counts)
    if shape is None:
        return
    around, blocks = loop.parent, list[Body | None]()
    outer: list[Body] = []
    for extent, size in zip(extents, shape, strict=True):
        blocks.append(None if size == extent else Body(around, None, extent, block=size))
        if blocks[-1] is not None:
            around = blocks[-1]
            outer.append(around)
    loops = [(row, shape[0], blocks[0]), (column, shape[1], blocks[1])]
    (first, second) = loops[::-1] if lower.by_channel else loops  # in the order in which the block is stored
    outside = Body(around, first[0], first[1], of=first[2])
    inside = Body(outside, second[0], second[1], of=second[2])
    outside.items, inside.items = [inside], inner.items
    for step in steps:
        step.root.inner = inside
        if step.root.home is inner:  # the loop of a reduction over the rows is around them
            step.root.home = inside
    root.inner = root.home = around
    items: list[Body | RootStep] = [product, outside]
    for block in reversed(outer):
        block.items, items = items, [block]
    at = loop.parent.items.index(loop)
    loop.parent.items[at : at + 1] = items
    axes, over = (loop.axis, inner.axis), (blocks[0], blocks[1])
    nest.scratch[v] = Scratch(v, axes, shape, v.type.dtype, over, transposed=lower.by_channel)
