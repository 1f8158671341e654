"""Windows that meet: the sum of gradients of disjoint parts of one value is assembled from them, so that no zeros
are stored and added; and the very part that was put into a window is that part. Where only windows look at what a cheap
elementwise op gives, each window computes its part of it.
"""

from __future__ import annotations

from ..dtypes import Type
from ..errors import ShapeError
from ..ir import Graph, Node, Value, apply, substitute, topological, users
from ..op import Assemble, Elementwise, View


def join_windows(graph: Graph) -> Graph:
    """See the module."""
    readers = users(topological(graph.roots))
    roots = set(graph.roots)

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...] | None:
        if isinstance(node.op.lower, View) and node.op.lower.window:
            part = _part(operands[0].node, node)
            if (
                part is None
                and node.operands[0] not in roots
                and all(map(_is_window, readers[node.operands[0]]))
            ):
                part = _computed(operands[0].node, node)
            return None if part is None else (part,)
        if node.op.name != "add":
            return None
        if any(v in roots for v in node.operands):
            return None
        joined = _joined(operands[0], operands[1], node.hint)
        return None if joined is None else (joined,)

    return graph.with_roots(substitute(graph.roots, rewrite))


def _is_window(node: Node) -> bool:
    return isinstance(node.op.lower, View) and node.op.lower.window


def _computed(node: Node, window: Node) -> Value | None:
    """The window of a cheap elementwise op, computed from windows of its operands."""
    if not isinstance(node.op.lower, Elementwise) or not node.op.lower.cheap or "layout" in node.attrs:
        return None
    taken, starts, steps = window.results[0].type.shape, window.attrs["starts"], window.attrs["steps"]
    operands = []
    for v in node.operands:
        own = v.type.shape
        first = len(taken) - len(own)
        at = [
            (1, 0, 1) if d == 1 else (e, start, step)
            for d, e, start, step in zip(own, taken[first:], starts[first:], steps[first:], strict=True)
        ]
        whole = all(part == (d, 0, 1) for d, part in zip(own, at, strict=True))
        shape, begin, stride = zip(*at, strict=True) if at else ((), (), ())
        operands.append(v if whole else apply("slice", v, shape=shape, starts=begin, steps=stride))
    (result,) = node.results
    return Node(
        node.op, tuple(operands), node.attrs, (Type(result.type.dtype, taken),), hint=node.hint
    ).results[0]


def _part(assembled: Node, window: Node) -> Value | None:
    """The operand of `assembled` that stands just where `window` looks."""
    if isinstance(assembled.op.lower, Assemble):
        parts = zip(assembled.operands, assembled.attrs["starts"], assembled.attrs["steps"], strict=True)
        for v, starts, steps in parts:
            if (v.type.shape, starts, steps) == (
                window.results[0].type.shape,
                window.attrs["starts"],
                window.attrs["steps"],
            ):
                return v
    return None


def _joined(a: Value, b: Value, hint: str) -> Value | None:
    """a + b where both are zero but for windows that do not overlap."""
    if a.type != b.type or not all(
        isinstance(v.node.op.lower, Assemble) and v.node.attrs["fill"] == 0.0 for v in (a, b)
    ):
        return None
    first, second = a.node, b.node
    attrs = {
        **first.attrs,
        "starts": first.attrs["starts"] + second.attrs["starts"],
        "steps": first.attrs["steps"] + second.attrs["steps"],
    }
    operands = (*first.operands, *second.operands)
    try:
        y = first.op.infer(*(v.type for v in operands), **attrs)
    except ShapeError:  # they overlap
        return None
    assert not isinstance(y, tuple)
    return Node(first.op, operands, attrs, (y,), hint=hint).results[0]
