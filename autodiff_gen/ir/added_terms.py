"""Terms that kernels add to memory, y = (+ or -) alpha term + beta old: `AddedToMemory` in op_forms.py."""

from __future__ import annotations

from .build import apply, constant, with_shape
from .node import OPS, Node, Op, Value, in_form, inferred
from .op_forms import AddedToMemory
from .op_kinds import Contraction


def adding_op(node: Node) -> Op | None:
    """The op that adds a node's result to memory, if there is one; kernels add matrices, but no stacks of matrices."""
    if isinstance(node.op.lower, Contraction) and node.results[0].ndim != 2:
        return None
    return in_form(node.op, AddedToMemory)


def added(
    term: Value, old: Value, alpha: Value | None = None, beta: float = 1.0, negate: bool = False
) -> Value:
    """(+ or -) alpha term + beta old, of the term's shape, in the memory of `old`, which has as many elements and which
    nothing else reads; alpha is 1 if it is not given."""
    node, op = term.node, adding_op(term.node)
    assert op is not None
    alpha = constant(1.0, term.dtype) if alpha is None else alpha
    attrs = {**node.attrs, "beta": beta, "negate": negate}
    return apply(op.name, *node.operands, with_shape(old, term.type.shape), alpha, **attrs)


def added_operands(node: Node) -> range:
    """Which operands of a node that adds to memory are the old value and alpha; none of other nodes."""
    count = len(node.operands)
    return range(count - 2, count) if isinstance(node.op.form, AddedToMemory) else range(0)


def added_to(node: Node) -> Value | None:
    """The old value of the memory to which a node adds a term; None for other nodes."""
    return next((node.operands[k] for k in added_operands(node)), None)


def added_term(node: Node) -> Node:
    """The node of the term that a node adds to memory; the node itself for other nodes."""
    form = node.op.form
    if not isinstance(form, AddedToMemory) or not form.of:
        return node
    operands = node.operands[:-2]
    attrs = {k: a for k, a in node.attrs.items() if k not in ("beta", "negate")}
    op = OPS[form.of]
    return Node(op, operands, attrs, inferred(op, [v.type for v in operands], attrs), origin=node.origin)


def with_term(node: Node, term: Value) -> Value:
    """The result of a node that adds to memory, with this term; the term itself for other nodes."""
    form = node.op.form
    if not isinstance(form, AddedToMemory) or not form.of:
        return term
    old, alpha = node.operands[-2:]
    kept = old if node.attrs["beta"] == 1 else apply("mul", old, node.attrs["beta"])
    return apply("sub" if node.attrs["negate"] else "add", kept, apply("mul", alpha, term))
