"""Loops and conditions whose parts are Python functions on graph values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import ShapeError
from ..ir.closures import param
from ..ir.identifiers import identifier
from ..ir.node import Node, Value
from ..ir.op_kinds import Moded
from ..ir.types import Dim, Type
from ..ops.cond import make_cond, marker
from ..ops.scan_builder import make_scan, time_first
from .arguments import as_value, shown


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """A loop over the first axis of `xs`, as jax.lax.scan: carry, y = f(carry, x), once for each x = xs[t].

    The carry begins as `init` and keeps its shapes and dtypes. Returns (the last carry, ys), where ys[t] is the y
    of time t. Carry, x and y are values, tuples, lists or dicts of them, or None; without xs, `length` says how
    often f runs. `reverse`: t runs from the end. f is called once, while the graph is built: the generated C is one
    loop, however long.
    """
    first, given = [as_value(v) for v in leaves("scan", init)], [as_value(v) for v in leaves("scan", xs)]
    steps = _length(given, length)
    names = _names(init, "carry")
    old = [param(name, v.type) for name, v in zip(names, first, strict=True)]
    now = [param(f"{_hint(v, 'x')}_t", Type(v.dtype, v.shape[1:]), v) for v in given]
    made = f(like(init, old), like(xs, now))
    if not isinstance(made, tuple) or len(made) != 2:
        raise ShapeError("scan: the step must return (carry, y), two things; y may be None")
    new = [as_value(v) for v in leaves("scan", made[0])]
    ys = [as_value(v) for v in leaves("scan", made[1])]
    if structure(made[0]) != structure(init):
        raise ShapeError(
            f"scan: the carry is {structure(init)}, but the step returns {structure(made[0])}; they must agree"
        )
    for i, (a, b) in enumerate(zip(first, new, strict=True)):
        if a.type != b.type:
            which = "the carry" if len(first) == 1 else f"carry {i}"
            raise ShapeError(
                f"scan: {which} begins as {a.type}, but the step returns {b.type}; shapes and dtypes must stay"
            )
    if not new and not ys:
        raise ShapeError("scan: the step returns neither a carry nor a y")
    node = make_scan(first, given, [*old, *now], new, ys, steps, reverse)
    _check_modes("scan", node)
    stacks = zip(node.results[len(new) : len(new) + len(ys)], node.attrs["axes"], strict=False)
    return like(made[0], node.results[: len(new)]), like(made[1], [time_first(v, a) for v, a in stacks])


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Any) -> Any:
    """true_fn(*operands) where the scalar `pred` is true (or a number other than 0), else false_fn(*operands), as
    jax.lax.cond: only one of them is computed when the code runs.

    Both return values of the same nesting, shapes and dtypes. They are called once each, while the graph is built.
    """
    p = as_value(pred)
    if p.shape != ():
        raise ShapeError(f"cond(pred: {p.type}): pred must be a scalar; F.where chooses by element")
    since = marker()
    made = [f(*operands) for f in (true_fn, false_fn)]
    if structure(made[0]) != structure(made[1]):
        raise ShapeError(
            f"cond: true_fn returns {structure(made[0])}, but false_fn returns {structure(made[1])}; they must agree"
        )
    then, otherwise = ([as_value(v) for v in leaves("cond", tree)] for tree in made)
    if not then:
        raise ShapeError("cond: the functions return no value")
    for i, (a, b) in enumerate(zip(then, otherwise, strict=True)):
        if a.type != b.type:
            which = "" if len(then) == 1 else f" as value {i}"
            raise ShapeError(
                f"cond: true_fn returns {a.type}{which}, but false_fn returns {b.type}; they must agree"
            )
    node = make_cond(p, then, otherwise, since)
    _check_modes("cond", node)
    return like(made[0], node.results)


def _check_modes(name: str, node: Node) -> None:
    for n in (n for region in node.regions for n in region.nodes):
        if isinstance(n.op.lower, Moded):
            raise ShapeError(
                f"{name}: a step that differs between training and evaluation (dropout, batch_norm) is not "
                f"supported; apply it to what goes in or comes out"
            )


def _names(tree: Any, name: str) -> list[str]:
    """What the values of a tree are called: the keys of dicts, else `name` with a number where there are several."""
    if tree is None:
        return []
    if isinstance(tree, dict):
        return [n for key, part in tree.items() for n in _names(part, identifier(str(key)))]
    if isinstance(tree, tuple | list):
        several = len(tree) > 1
        return [n for i, part in enumerate(tree) for n in _names(part, f"{name}{i}" if several else name)]
    return [name]


def _hint(v: Value, otherwise: str) -> str:
    return v.name or v.node.hint or otherwise


def _length(xs: Sequence[Value], length: int | None) -> int:
    if length is not None and (not isinstance(length, int) or isinstance(length, bool) or length < 1):
        raise ShapeError(f"scan: length={length!r} must be a whole number of at least 1")
    extents = set()
    for v in xs:
        if v.ndim == 0:
            raise ShapeError(f"scan({shown(*xs)}): xs are walked along their first axis; a scalar has none")
        if isinstance(v.shape[0], Dim):
            raise ShapeError(
                f"scan({shown(*xs)}): the first axis of xs is the time, not the batch n; use F.transpose(x, 0, 1)"
            )
        extents.add(v.shape[0])
    if length is not None:
        extents.add(length)
    if not extents:
        raise ShapeError("scan: without xs, length= must say how often the step runs")
    if len(extents) > 1:
        told = f" and length={length}" if length is not None else ""
        raise ShapeError(f"scan({shown(*xs)}){told}: the first axes must be equally long")
    return int(extents.pop())


def leaves(name: str, tree: Any) -> list[Any]:
    """The values of nested tuples, lists and dicts, in order; None holds none."""
    if tree is None:
        return []
    if isinstance(tree, dict):
        return [v for part in tree.values() for v in leaves(name, part)]
    if isinstance(tree, tuple | list):
        return [v for part in tree for v in leaves(name, part)]
    if not isinstance(tree, Value) and not hasattr(tree, "__array__") and not isinstance(tree, int | float):
        raise ShapeError(f"{name}: {tree!r} is neither a graph value, an array, a number nor a tuple of them")
    return [tree]


def structure(tree: Any) -> str:
    """The nesting of a tree as text, to compare and to show."""
    if tree is None:
        return "None"
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{k!r}: {structure(v)}" for k, v in tree.items()) + "}"
    if isinstance(tree, tuple | list):
        inner = ", ".join(structure(v) for v in tree)
        return f"({inner})" if isinstance(tree, tuple) else f"[{inner}]"
    return "*"


def like(tree: Any, values: Sequence[Value]) -> Any:
    """`values` in the nesting of `tree`."""
    rest = iter(values)

    def build(at: Any) -> Any:
        if at is None:
            return None
        if isinstance(at, dict):
            return {k: build(v) for k, v in at.items()}
        if isinstance(at, tuple | list):
            return type(at)(build(v) for v in at)
        return next(rest)

    return build(tree)
