"""Properties of nodes for passes, read from the op's record and never from the op's name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .node import CONST, Node, Op, Value, in_form
from .op_forms import ByRows, WithEpilogue
from .op_kinds import (
    Assemble,
    Contraction,
    Elementwise,
    Extent,
    Iota,
    KernelOp,
    Leaf,
    Pick,
    Reduce,
    RowContraction,
    View,
    ViewKind,
)
from .strides import dense
from .views import layout


def view_kind(node: Node) -> ViewKind | None:
    """The effect of a view on the axes; None for a node that is no view."""
    return node.op.lower.kind if isinstance(node.op.lower, View) else None


def is_sum(node: Node) -> bool:
    """Whether the node adds up elements of its operand, and does nothing else."""
    return isinstance(node.op.lower, Reduce) and node.op.lower.sums


def is_plain_product(node: Node) -> bool:
    """Whether the node is a contraction that only multiplies."""
    return isinstance(node.op.lower, Contraction) and node.op.form is None


def by_rows(node: Node, operands: tuple[Value, ...]) -> Value | None:
    """The result of a node with these operands, completed by rows in a fused loop; None where it cannot be."""
    op = in_form(node.op, ByRows)
    if op is None:
        return None
    assert isinstance(op.form, ByRows)
    value: Value | None = op.form.made(operands, node.attrs)
    return value


def in_one_call(node: Node, operands: tuple[Value, ...]) -> Value:
    """The result of a node that completes a matrix by rows with these operands, computed in one call."""
    assert isinstance(node.op.form, ByRows)
    value: Value = node.op.form.in_one_call(operands, node.attrs)
    return value


def has_epilogue(node: Node) -> bool:
    """Whether the kernel of a node computes an epilogue too."""
    return isinstance(node.op.form, WithEpilogue)


def is_expensive(node: Node) -> bool:
    """Whether the op is elementwise and too expensive to be computed again in each loop that reads its result."""
    return isinstance(node.op.lower, Elementwise) and not node.op.lower.cheap


def is_work(node: Node) -> bool:
    """Whether computing the node in every iteration of a loop costs more than reading it: random numbers are drawn
    again rather than kept from step to step, but not for every place of a channel."""
    return is_expensive(node) or (isinstance(node.op.lower, Elementwise) and bool(node.op.lower.header))


def is_by_channel(v: Value, y: Value) -> bool:
    """Whether v has one number for each channel of y, its last axis."""
    return v.type.shape[-1:] == y.type.shape[-1:] and all(d == 1 for d in v.type.shape[:-1])


def uniform(v: Value) -> np.generic | None:
    """The number of a constant that has one element, also through views, such as a broadcast. None for other values,
    even for a constant array of equal elements.
    """
    source = v.base.node
    if source.op is CONST and source.attrs["value"].size == 1:
        number: np.generic = source.attrs["value"].reshape(-1)[0]
        return number
    return None


def is_free(node: Node) -> bool:
    """Whether every loop may compute the node for itself: it depends on nothing."""
    is_number = node.op is CONST and node.attrs["value"].size == 1
    return is_number or isinstance(node.op.lower, (Iota, Extent))


def is_fusable(node: Node) -> bool:
    """Whether loops compute the node, together with others."""
    return isinstance(node.op.lower, (Elementwise, Reduce, Pick, Assemble, RowContraction))


def has_address(v: Value) -> bool:
    """Whether v is stored in memory: it is not written into expressions, nor passed by value."""
    source = v.base.node
    return not is_free(source) and not (isinstance(source.op.lower, Leaf) and v.base.type.shape == ())


def macs(node: Node) -> int:
    """Multiply-accumulates of the kernel's call that a node becomes, where operands without a layout are copied."""
    lower = node.op.lower
    assert isinstance(lower, KernelOp)
    layouts = [layout(v) or dense(v.type.shape) for v in node.operands]
    return lower.macs(lower.choose(layouts, [r.type for r in node.results], node.attrs))


def changes(node: Node) -> list[tuple[Value, Value, bool]]:
    """(old, change, whether the change is subtracted) of a sum or difference, for each operand that may be the old
    value: a + b is a changed by b and b changed by a, and a - b is a changed by -b.
    """
    if len(node.op.signs) != 2:
        return []
    terms = list(zip(node.operands, node.op.signs, strict=True))
    return [(a, b, t < 0) for (a, s), (b, t) in (terms, terms[::-1]) if s > 0]


def compared_with_their_extremes(nodes: Iterable[Node]) -> set[Value]:
    """Values of loops whose elements are compared with one of them for equality, as the gradient of a maximum does.
    They are computed once: where a compiler contracts products and sums, the same expression in another loop may have
    other bits, and no element would be equal."""
    pairs = [(v.base, w.base) for n in nodes if n.op.equality for v, w in (n.operands, n.operands[::-1])]
    return {
        v
        for v, w in pairs
        if isinstance(v.node.op.lower, Elementwise) and isinstance(w.node.op.lower, Reduce)
    }


_NOT_COMPARED = ("exact", "index_of_inputs")  # implied by other attributes or the operands


def _key(attr: Any) -> Any:
    return (attr.dtype.str, attr.shape, attr.tobytes()) if isinstance(attr, np.ndarray) else attr


def key_of(node: Node, operands: tuple[Any, ...], instead: Op | None = None) -> Any:
    """A key that is equal for nodes that compute the same, where equal `operands` are the same values; `instead`: an op
    in place of the node's op."""
    if isinstance(node.op.lower, Leaf) and node.op is not CONST:
        return node
    known = sorted(k for k in node.attrs if k not in _NOT_COMPARED) if node.attrs else ()
    attrs = tuple([(k, _key(node.attrs[k])) for k in known])
    types = tuple([(r.type.dtype, r.type.shape) for r in node.results])
    return instead or node.op, operands, attrs, node.regions, types
