"""Operands that kernels and the loops of regions cannot read in place, or read more cheaply as copies; and functions
that make copies."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.added_terms import added_operands
from ...ir.build import apply
from ...ir.graph import Graph, State
from ...ir.identifiers import identifier
from ...ir.node import CONST, Node, Value, base
from ...ir.op_kinds import Cond, Contraction, KernelOp, Leaf, RowContraction, Scan, View
from ...ir.origin import UPDATE, Label, building, is_after_loss
from ...ir.strides import Strided, dense
from ...ir.traits import has_address, has_epilogue, macs
from ...ir.types import planned_size
from ...ir.views import known_layout, layout
from ..context import Context
from ..costs import is_gathered_once


def unreadable(node: Node, operands: Sequence[Value]) -> set[int]:
    """The numbers of the operands that the kernel, the region or the loops of a node cannot read in place."""
    return {i for i, v in enumerate(operands) if layout(v) is None or not _is_readable(node, i, v)}


def _is_readable(node: Node, i: int, v: Value) -> bool:
    """Whether the node can read v, which has a layout, as its i-th operand."""
    lower = node.op.lower
    if isinstance(lower, RowContraction) and lower.call is not None and i < 2:
        return has_address(v) if i else _has_adjacent_rows(v)
    if isinstance(lower, Contraction | RowContraction) and i < 2:
        return is_readable_by_gemm(v)
    if isinstance(lower, Contraction):
        return not has_epilogue(node) or _is_dense(v)
    return not isinstance(lower, KernelOp | Scan | Cond) or _serves(node, i, v)


def copied_again(graph: Graph, context: Context) -> set[Value]:
    """The values whose copies are made again in the backward pass and updates, where memory is weighed against time:
    inputs, states and constants, and values that a node there reads in place. They are in memory in any case."""
    if not context.weighs_memory:
        return set()
    nodes = [n for n in graph.nodes if not isinstance(n.op.lower, View)]
    late = [n for n in nodes if is_after_loss(n.origin)]
    read = {v.base for n in late for i, v in enumerate(n.operands) if i not in unreadable(n, n.operands)}
    return read | {v.base for n in nodes for v in n.operands if isinstance(v.base.node.op.lower, Leaf)}


def better_copied(node: Node, context: Context) -> set[int]:
    """The numbers of the operands that a call would gather, where copies are cheaper."""
    lower = node.op.lower
    assert isinstance(lower, KernelOp)

    def is_cheaper(i: int) -> bool:
        elements = planned_size(node.operands[i].type.shape)
        return is_gathered_once(context.cost, elements, macs(node), _is_tiled(node, i, context))

    return {i for i in lower.strided if has_gaps(node.operands[i]) and is_cheaper(i)}


def _is_tiled(node: Node, i: int, context: Context) -> bool:
    """Whether one backend serves a call both with operand i as it is stored and with a dense operand i. Often only a
    reference kernel can read the operand as it is stored."""
    lower, layouts = node.op.lower, [layout(v) or dense(v.type.shape) for v in node.operands]
    assert isinstance(lower, KernelOp)
    if context.backends is None:
        return True
    backends, types = set(), [r.type for r in node.results]
    for at in (layouts[i], dense(node.operands[i].type.shape)):
        call = lower.choose([at if k == i else other for k, other in enumerate(layouts)], types, node.attrs)
        backends.add(context.backends.select(call.kernel, call.facts()).backend)
    return len(backends) == 1


def has_gaps(v: Value) -> bool:
    """Whether elements that are adjacent along the last axis are not adjacent in memory."""
    at = known_layout(v)
    return next(
        (step != 1 for d, step in zip(at.shape[::-1], at.strides[::-1], strict=True) if d != 1), False
    )


def is_readable_by_gemm(v: Value) -> bool:
    """Whether a gemm kernel can read v: one of the last two axes must be contiguous, and neither repeats."""
    if not has_address(v):
        return False
    at = known_layout(v)
    (rows, columns), (row_step, column_step) = at.shape[-2:], at.strides[-2:]
    if rows == 1 or columns == 1:  # a vector with a stride, so not a broadcast
        return (rows == 1 or row_step > 0) and (columns == 1 or column_step > 0)
    return (column_step == 1 and row_step > 0) or (row_step == 1 and column_step > 0)


def _has_adjacent_rows(v: Value) -> bool:
    """Whether the elements of a column are adjacent in memory, and no column repeats. The rows of the matrix are the
    channels of an image."""
    if not has_address(v):
        return False
    at = known_layout(v)
    (rows, columns), (row_step, column_step) = at.shape, at.strides
    return (rows == 1 or row_step == 1) and (columns == 1 or column_step > 0)


def _serves(node: Node, i: int, v: Value) -> bool:
    """Whether a call or a region can read v as its i-th operand."""
    call = node.op.lower
    if not isinstance(
        call, KernelOp
    ):  # in memory, or a number that is passed by value or written into expressions
        source = base(v).node
        return has_address(v) or source.op is CONST or (isinstance(source.op.lower, Leaf) and v.shape == ())
    if i in added_operands(node):
        return True
    return (i in call.strided and has_address(v)) or _is_dense(v)


def _is_dense(v: Value) -> bool:
    """Whether the elements of v are stored one after the other, in its order."""
    at = known_layout(v)
    return has_address(v) and Strided(at.shape, at.strides).dense


def copied(v: Value) -> Value:
    """A copy with the scope and the phase of the value."""
    return copied_for(v, v.node.origin.scope, base(v).node.origin.phase)


def copied_for(v: Value, scope: str, phase: str) -> Value:
    with building(scope, phase):
        copy = apply("copy", v)
    copy.node.origin.labels[0] = Label("copy", copy_of=v)
    return copy


def snapshot(v: Value, state: State, phase: str = UPDATE) -> Value:
    """A copy of the old value of a state, which is read after the state's update; the report lists such copies. phase:
    the phase of training that the copy belongs to."""
    with building(phase=phase):
        copy = apply("copy", v, snapshot=True)
    copy.node.origin.labels[0] = Label(f"old_{identifier(state.name)}")
    return copy
