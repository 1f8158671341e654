"""What passes need to know of a node, read from its op's record and never from the op's name."""

from __future__ import annotations

from collections.abc import Iterable

from .node import Node, Value
from .op_kinds import Call, Contraction, Elementwise, Reduce, View, ViewKind
from .strides import dense
from .views import layout


def view_kind(node: Node) -> ViewKind | None:
    """What a view does to the axes; None for a node that is no view."""
    return node.op.lower.kind if isinstance(node.op.lower, View) else None


def is_sum(node: Node) -> bool:
    """Whether the node adds up elements of its operand, and does nothing else."""
    return isinstance(node.op.lower, Reduce) and node.op.lower.sums


def is_plain_product(node: Node) -> bool:
    """Whether the node is a contraction that neither adds to memory nor has a layout of its own."""
    return isinstance(node.op.lower, Contraction) and bool(node.op.lower.placed)


def is_expensive(node: Node) -> bool:
    """Whether loops that read a value of the node compute it once and read it."""
    return isinstance(node.op.lower, Elementwise) and not node.op.lower.cheap


def is_work(node: Node) -> bool:
    """Whether computing the node in every iteration of a loop costs more than reading it: random numbers are drawn
    again rather than kept from step to step, but not for every place of a channel."""
    return is_expensive(node) or (isinstance(node.op.lower, Elementwise) and bool(node.op.lower.header))


def macs(node: Node) -> int:
    """Multiply-accumulates of the kernel's call that a node becomes, where operands without a layout are copied."""
    lower = node.op.lower
    assert isinstance(lower, Call)
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
