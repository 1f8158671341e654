"""Loops and branches whose bodies are Python functions on graph values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import ShapeError
from ..ir.closures import param
from ..ir.identifiers import identifier
from ..ir.node import Node, Value, base
from ..ir.op_kinds import Moded
from ..ir.types import Dim, Type
from ..ops.control_flow.cond import make_cond, marker
from ..ops.control_flow.scan_builder import make_scan, time_first
from .arguments import TensorLike, as_value, describe

__all__ = ["cond", "scan"]


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """A loop over the first axis of `xs`, as jax.lax.scan: carry, y = f(carry, x) for each x = xs[t].

    The initial carry is `init`; its shapes and dtypes do not change. Returns (the final carry, ys), where ys[t] is the
    y of time t. Carry, x and y are values, tuples, lists or dicts of them, or None. The first axis of xs cannot be the
    batch; without xs, `length` is the number of iterations. `reverse`: t runs from the end. f is called once, to trace
    it, and the generated C is one loop. Raises ShapeError.
    """
    first, given = (
        [as_value(v) for v in tree_leaves("scan", init)],
        [as_value(v) for v in tree_leaves("scan", xs)],
    )
    iterations = _length(given, length)
    names = _names(init, "carry")
    old = [param(name, v.type) for name, v in zip(names, first, strict=True)]
    elements = [param(f"{_called(v, 'x')}_t", Type(v.dtype, v.shape[1:]), v) for v in given]
    out = f(tree_like(init, old), tree_like(xs, elements))
    if not isinstance(out, tuple) or len(out) != 2:
        raise ShapeError("scan: the step must return (carry, y), two things; y may be None")
    new = [as_value(v) for v in tree_leaves("scan", out[0])]
    ys = [as_value(v) for v in tree_leaves("scan", out[1])]
    if tree_structure(out[0]) != tree_structure(init):
        raise ShapeError(
            f"scan: the carry is {tree_structure(init)}, but the step returns {tree_structure(out[0])}; they must agree"
        )
    for i, (a, b) in enumerate(zip(first, new, strict=True)):
        if a.type != b.type:
            which = "the carry" if len(first) == 1 else f"carry {i}"
            raise ShapeError(
                f"scan: {which} begins as {a.type}, but the step returns {b.type}; shapes and dtypes must stay"
            )
    if not new and not ys:
        raise ShapeError("scan: the step returns neither a carry nor a y; return (carry, y)")
    node = make_scan(first, given, [*old, *elements], new, ys, iterations, reverse)
    _check_modes("scan", node)
    stacks = zip(node.results[len(new) : len(new) + len(ys)], node.attrs["axes"], strict=False)
    return tree_like(out[0], node.results[: len(new)]), tree_like(
        out[1], [time_first(v, a) for v, a in stacks]
    )


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: TensorLike) -> Any:
    """true_fn(*operands) if the scalar `pred` is true (or a number other than 0), otherwise false_fn(*operands), as
    jax.lax.cond: only one of them is computed at run time.

    Both return values with the same nesting, shapes and dtypes. Each is called once, to trace it. Raises ShapeError.
    """
    p = as_value(pred)
    if p.shape != ():
        raise ShapeError(f"cond(pred: {p.type}): pred must be a scalar; F.where selects per element")
    since = marker()
    outs = [f(*operands) for f in (true_fn, false_fn)]
    if tree_structure(outs[0]) != tree_structure(outs[1]):
        raise ShapeError(
            f"cond: true_fn returns {tree_structure(outs[0])}, but false_fn returns {tree_structure(outs[1])}; "
            "they must agree"
        )
    then, otherwise = ([as_value(v) for v in tree_leaves("cond", tree)] for tree in outs)
    if not then:
        raise ShapeError("cond: the functions return no value; return the same number of values from both")
    for i, (a, b) in enumerate(zip(then, otherwise, strict=True)):
        if a.type != b.type:
            which = "" if len(then) == 1 else f" as value {i}"
            raise ShapeError(
                f"cond: true_fn returns {a.type}{which}, but false_fn returns {b.type}; they must agree"
            )
    node = make_cond(p, then, otherwise, since)
    _check_modes("cond", node)
    return tree_like(outs[0], node.results)


def _check_modes(name: str, node: Node) -> None:
    for n in (n for region in node.regions for n in region.nodes):
        if isinstance(n.op.lower, Moded):
            raise ShapeError(
                f"{name}: a step that differs between training and evaluation (dropout, batch_norm) is not "
                f"supported; apply it before or after"
            )


def _names(tree: Any, name: str) -> list[str]:
    """Names of the values of a tree: the keys of dicts, otherwise `name`, numbered if there are several."""
    if tree is None:
        return []
    if isinstance(tree, dict):
        return [n for key, part in tree.items() for n in _names(part, identifier(str(key)))]
    if isinstance(tree, tuple | list):
        several = len(tree) > 1
        return [n for i, part in enumerate(tree) for n in _names(part, f"{name}{i}" if several else name)]
    return [name]


def _called(v: Value, otherwise: str) -> str:
    known = base(v).node.origin.labels.get(base(v).index)
    return v.name or (known.role if known is not None and known.role else otherwise)


def _length(xs: Sequence[Value], length: int | None) -> int:
    if length is not None and (not isinstance(length, int) or isinstance(length, bool) or length < 1):
        raise ShapeError(f"scan: length={length!r} must be an integer of at least 1")
    extents = set()
    for v in xs:
        if v.ndim == 0:
            raise ShapeError(
                f"scan({describe(*xs)}): xs are indexed along their first axis; a scalar has none"
            )
        if isinstance(v.shape[0], Dim):
            raise ShapeError(
                f"scan({describe(*xs)}): the first axis of xs is the time, not the batch n; use F.transpose(x, 0, 1)"
            )
        extents.add(v.shape[0])
    if length is not None:
        extents.add(length)
    if not extents:
        raise ShapeError("scan: without xs, length= must be given")
    if len(extents) > 1:
        with_length = f" and length={length}" if length is not None else ""
        raise ShapeError(f"scan({describe(*xs)}){with_length}: the first axes must be equally long")
    return int(extents.pop())


def tree_leaves(name: str, tree: Any) -> list[Any]:
    """The values of nested tuples, lists and dicts, in order, as jax.tree.leaves; None has no values."""
    if tree is None:
        return []
    if isinstance(tree, dict):
        return [v for part in tree.values() for v in tree_leaves(name, part)]
    if isinstance(tree, tuple | list):
        return [v for part in tree for v in tree_leaves(name, part)]
    if not isinstance(tree, Value) and not hasattr(tree, "__array__") and not isinstance(tree, int | float):
        raise ShapeError(f"{name}: {tree!r} is neither a graph value, an array, a number nor a tuple of them")
    return [tree]


def tree_structure(tree: Any) -> str:
    """The nesting of a tree as text, for comparison and messages."""
    if tree is None:
        return "None"
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{k!r}: {tree_structure(v)}" for k, v in tree.items()) + "}"
    if isinstance(tree, tuple | list):
        inner = ", ".join(tree_structure(v) for v in tree)
        return f"({inner})" if isinstance(tree, tuple) else f"[{inner}]"
    return "*"


def tree_like(tree: Any, values: Sequence[Value]) -> Any:
    """`values` with the nesting of `tree`."""
    remaining = iter(values)

    def build(part: Any) -> Any:
        if part is None:
            return None
        if isinstance(part, dict):
            return {k: build(v) for k, v in part.items()}
        if isinstance(part, tuple | list):
            return type(part)(build(v) for v in part)
        return next(remaining)

    return build(tree)
