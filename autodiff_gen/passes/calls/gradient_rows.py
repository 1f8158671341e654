"""Gradient rows: complete the gradient of weights a few rows at a time, and apply the rule of the optimizer to these
rows, so that the whole gradient is nowhere stored. A row of a convolution's weights is an output channel.

    entry f(x: f32[1,4,4,2], dy: f32[1,4,4,8], lr: f32[])
      %0: f32[8,3,3,2] = conv2d_dw(x, dy, stride=(1, 1), padding=(1, 1, 1, 1), dilation=(1, 1), groups=1, kernel=(3, 3))
      %1: f32[8,3,3,2] = sign(%0)
      %2: f32[8,3,3,2] = mul(lr, %1)
      %3: f32[8,3,3,2] = sub(w, %2)
      w' <- %3
    ->
    entry f(x: f32[1,4,4,2], dy: f32[1,4,4,8], lr: f32[])
      %0: f32[8,18] = reshape(w, shape=(8, 18))
      %1: f32[16,8] = reshape(dy, shape=(16, 8))
      %2: f32[8,16] = permute(%1, dims=(1, 0))
      %3: f32[8,18] = conv2d_dw_rows(%2, x, stride=(1, 1), padding=(1, 1, 1, 1), dilation=(1, 1), groups=1,
          kernel=(3, 3))
      %4: f32[8,18] = sign(%3)
      %5: f32[8,18] = mul(lr, %4)
      %6: f32[8,18] = sub(%0, %5)
      %7: f32[8,3,3,2] = reshape(%6, shape=(8, 3, 3, 2))
      w' <- %7

Depthwise convolutions store their weights channel-last, so that a channel is a column: its gradient reads only the same
channel of x. Products of matrices become `matmul_rows`, whose result has the shape of the product. Rules that a kernel
computes, such as plain gradient descent, store no gradient anyway (`fuse_optimizer`). `whole_gradients` decides which
gradients stay by rows. Calls by rows read the whole of dy: where the RAM budget is exceeded, a gradient that is no
larger than dy is not completed by rows, since dy may then be computed strip by strip.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.build import apply, with_shape
from ...ir.graph import Graph
from ...ir.node import Node, Value
from ...ir.op_kinds import Contraction, Elementwise, Iota, KernelOp, RowContraction
from ...ir.origin import BACKWARD, Origin, building_as
from ...ir.rewrite import replaced
from ...ir.strides import dense
from ...ir.traits import by_rows
from ...ir.types import Shape, planned_size
from ...ir.views import layout
from ..context import Context
from ..profitability import excess
from .kernel_calls import rows_at_once


def gradient_rows(graph: Graph, context: Context) -> Graph:
    """See the module."""
    chains = [updates_of(graph, n.results[0]) for n in graph.of(KernelOp, Contraction) if len(n.results) == 1]
    rows = {v: new for chain in chains if chain for v, new in _by_rows(graph, chain, context)}
    return graph.with_roots(replaced(graph.roots, rows))


def updates_of(graph: Graph, gradient: Value) -> list[Value]:
    """A gradient and the values computed from it, if all of them are elementwise, have its shape, and are only read for
    updates; otherwise an empty list."""
    found = {gradient: None}
    pending = [gradient]
    while pending:
        v = pending.pop()
        readers = graph.users.get(v, ())
        if v in graph.outputs.values() or (not readers and v.node not in graph.written_by):
            return []
        for node in readers:
            same = len(node.results) == 1 and node.results[0].type.shape == gradient.type.shape
            if not same or not isinstance(node.op.lower, Elementwise):
                return []
            if node.results[0] not in found:
                found[node.results[0]] = None
                pending.append(node.results[0])
    return list(found)


def _by_rows(graph: Graph, chain: Sequence[Value], context: Context) -> list[tuple[Value, Value]]:
    """Values that are computed by rows, with their replacements: the gradient, or the new values of updates where rows
    are stored in another shape. The list is empty if the gradient or a value that the rule reads has no rows, or if
    strips save more."""
    gradient = chain[0]
    node, shape = gradient.node, gradient.type.shape
    with building_as(node.origin):
        product = by_rows(node, node.operands)
    if product is None or not _is_in_parts(product.base.node, context):
        return []
    if excess(graph, context) and gradient.type.bytes <= product.base.node.operands[0].type.bytes:
        return []
    origin = _origin_of_gradient(chain)
    product.base.node.origin = product.node.origin = origin
    if product.type.shape == shape:
        return [(gradient, product)]
    new, axis = {gradient: product}, 0 if product is product.base else len(shape) - 1
    updates = [v for v in graph.updates.values() if v in chain]
    if not all(_has_rows(v, shape, axis, product.type.shape, new, origin) for v in updates):
        return []
    return [(v, apply("reshape", new[v], shape=shape)) for v in updates]


def _is_in_parts(rows: Node, context: Context) -> bool:
    """Whether a call can complete fewer rows than all."""
    assert isinstance(rows.op.lower, RowContraction)
    if rows.op.lower.call is None:
        return True
    counts = rows_at_once(rows, [layout(v) or dense(v.type.shape) for v in rows.operands], context.backends)
    return len(counts) > 1


def _origin_of_gradient(chain: Sequence[Value]) -> Origin:
    """The origin of the value that is labelled as the gradient. This value may be the product times scales: the rows of
    the product then belong to the same update."""
    origins = [v.node.origin for v in chain if v.node.origin.phase == BACKWARD]
    named = (o for o in origins if any(label.gradient_of is not None for label in o.labels.values()))
    return next(named, chain[0].node.origin)


def _has_rows(
    v: Value, shape: Shape, axis: int, rows: Shape, new: dict[Value, Value], origin: Origin
) -> bool:
    """Whether a value is computed element by element from values of the whole shape, single numbers, or numbers for
    each row, along `axis` of the whole. If so, `new` maps it to a matrix of the shape `rows`. origin: for values of the
    backward pass."""
    of_rows = tuple(d if k == axis else 1 for k, d in enumerate(shape))
    pending = [v]
    while pending:
        u = pending[-1]
        node = u.node
        if u in new:
            pending.pop()
        elif u.type.shape != shape:
            if planned_size(u.type.shape) != 1 and (1,) * (len(shape) - u.ndim) + u.type.shape != of_rows:
                return False
            new[pending.pop()] = _numbers(u, (1, rows[1]) if axis else (rows[0], 1))
        elif (of := u.type.quantization) is not None and of.axis not in (None, axis):
            return False
        elif isinstance(node.op.lower, Iota) and "strides" not in node.attrs:
            new[pending.pop()] = apply(node.op.name, size=rows)
        elif not isinstance(node.op.lower, Elementwise) or len(node.results) != 1:
            new[pending.pop()] = apply("reshape", u, shape=rows)
        elif missing := [o for o in node.operands if o not in new]:
            pending += missing
        else:
            operands = tuple(new[o] for o in node.operands)
            at = origin if node.origin.phase == BACKWARD else node.origin
            made = Node(
                node.op, operands, node.attrs, (u.type.moved(lambda q: q.reshape(rows), rows),), origin=at
            )
            new[pending.pop()] = made.results[0]
    return True


def _numbers(v: Value, shape: Shape) -> Value:
    """One number, or one for each row, in that shape."""
    return with_shape(v, () if planned_size(v.type.shape) == 1 else shape)
