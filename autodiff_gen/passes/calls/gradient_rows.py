"""Gradient rows: the gradient of a convolution's weights is completed a few output channels at a time, and the rule of
the optimizer applied to these, so that the gradient of all of them is nowhere stored.

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

Of depthwise convolutions, whose weights are stored channel-last, a channel is a column: its gradient is of the same
channel of x. `fuse_optimizer` does the same for products of matrices. It is done where the memory of the gradient is
worth more than the calls, by the cost table. Rules that a kernel computes, such as plain gradient descent, store no
gradient anyway. The calls read the whole of dy; where the RAM budget is exceeded, and dy may be computed strip by strip
instead, that is done only where the gradient is larger than dy.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.build import apply, with_shape
from ...ir.graph import Graph
from ...ir.node import Node, Value
from ...ir.op_kinds import Call, Elementwise, Iota
from ...ir.origin import BACKWARD, Origin, building
from ...ir.rewrite import replaced
from ...ir.strides import dense
from ...ir.traits import by_rows
from ...ir.types import Shape, planned, planned_size
from ...ir.views import layout
from ..context import Context
from ..costs import rows_are_worth_it
from ..worth import excess
from .kernel_calls import rows_at_once


def gradient_rows(graph: Graph, context: Context) -> Graph:
    """See the module."""
    if graph.inner:
        return graph
    chains = _chains(graph)
    if chains and excess(graph, context):
        chains = [chain for chain in chains if chain[0].type.bytes > chain[0].node.operands[1].type.bytes]
    rows = {v: new for chain in chains for v, new in _by_rows(graph, chain, context)}
    return graph.with_roots(replaced(graph.roots, rows))


def _chains(graph: Graph) -> list[list[Value]]:
    """Gradients that could be completed by rows and that only feed elementwise rules of updates, each with the values
    of the rules."""
    found = []
    for node in graph.of(Call):
        if len(node.results) == 1 and by_rows(node, node.operands) is not None:
            chain = updates_of(graph, node.results[0])
            found += [chain] if chain else []
    return found


def updates_of(graph: Graph, gradient: Value) -> list[Value]:
    """A gradient and what is computed of it, if that is elementwise, of its shape, and for updates alone; otherwise
    nothing."""
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
    """The new values of updates, computed by rows; none where a rule reads something that has no rows, or the memory is
    not worth it."""
    gradient = chain[0]
    node, shape = gradient.node, gradient.type.shape
    with building(node.origin.scope, node.origin.phase):
        product = by_rows(node, node.operands)
    assert product is not None
    origin = _origin_of_gradient(chain)
    rows = product.base
    rows.node.origin = product.node.origin = origin
    (count, columns), inner = planned(rows.type.shape), rows.node.operands[0].type.shape[-1]
    counts = rows_at_once(
        rows.node, [layout(v) or dense(v.type.shape) for v in rows.node.operands], context.backends
    )
    if not rows_are_worth_it(context.cost, count, inner, columns, counts):
        return []
    new, axis = {gradient: product}, 0 if rows is product else len(shape) - 1
    updates = [v for v in graph.updates.values() if v in chain]
    if not all(_has_rows(v, shape, axis, product.type.shape, new, origin) for v in updates):
        return []
    return [(v, apply("reshape", new[v], shape=shape)) for v in updates]


def _origin_of_gradient(chain: Sequence[Value]) -> Origin:
    """That of the gradient itself, which may be a product times scales: what is computed for it belongs to the update
    as it does."""
    origins = [v.node.origin for v in chain if v.node.origin.phase == BACKWARD]
    named = (o for o in origins if any(label.gradient_of is not None for label in o.labels.values()))
    return next(named, chain[0].node.origin)


def _has_rows(
    v: Value, shape: Shape, axis: int, rows: Shape, new: dict[Value, Value], origin: Origin
) -> bool:
    """Whether a value is computed element by element of what has rows and columns: the whole, a number, or a number for
    each row, along `axis` of the whole; `new` has it as rows then, in the matrix `rows`. origin: of what the backward
    pass computes."""
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
