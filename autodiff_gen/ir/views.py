"""The layout of values: views resolved to (base value, offset, strides). Views need no memory."""

from __future__ import annotations

from .node import Node, Value
from .op_kinds import Fused, Pick, View, ViewKind
from .strides import Strided, dense
from .types import Dim, Shape, Size


def stored(v: Value) -> Strided:
    """The layout of v, which is no view, from its own first byte on: row-major without gaps, unless the
    plan around a loop says otherwise.
    """
    node = v.node
    if node.regions and isinstance(node.op.lower, Fused):
        node = node.regions[0].results[v.index].node
    at: Strided = node.attrs.get("layout") or dense(v.type.shape)
    return at


def layout(v: Value) -> Strided | None:
    """The layout of `v` over the bytes of base(v); None when a reshape needs a copy first."""
    chain: list[Value] = []
    while v.strided is None:
        if v is v.base:
            v.strided = (stored(v),)
        else:
            chain.append(v)
            v = v.node.operands[0]
    (at,) = v.strided
    for view in reversed(chain):
        at = view_layout(view.node, at) if at is not None else None
        view.strided = (at,)
    return at


def whole_views(v: Value) -> list[Value]:
    """v and the values below it, as long as each shows all elements of the next in the same order."""
    found = [v]
    while isinstance(v.node.op.lower, View):
        at, below = layout(v), v.node.operands[0]
        if at is None or not at.dense or v.type.bytes != below.type.bytes:
            break
        v = below
        found.append(v)
    return found


def known_layout(v: Value) -> Strided:
    """The layout of v, which has one: after copy_insertion every value has."""
    at = layout(v)
    assert at is not None, "copy_insertion copies what has no layout"
    return at


def is_stored_as(v: Value, result: Value) -> bool:
    """Whether v is stored in the order in which a result would be that reuses its memory: row-major without gaps, with
    the same extents except 1."""
    at = layout(v)
    return at is not None and at.dense and lengths(at.shape) == lengths(result.type.shape)


def lengths(shape: Shape) -> list[Size]:
    """The shape without its axes of one element."""
    return [d for d in shape if d != 1]


def view_layout(view: Node, at: Strided) -> Strided | None:
    """The layout of a view whose operand has the layout `at`; None when a reshape needs a copy first."""
    lower, out = view.op.lower, view.results[0].type.shape
    assert isinstance(lower, View)
    if lower.window:
        return at.window(out, view.attrs["starts"], view.attrs["steps"])
    if lower.kind is ViewKind.WINDOWS:
        return at.windows(out, view.attrs["stride"], view.attrs["dilation"])
    dims = lower.dims(at.shape, out, view.attrs)
    if dims is not None:
        return Strided(out, tuple(0 if d is None else at.strides[d] for d in dims), at.offset)
    strides = split_or_merge(at, out)
    return None if strides is None else Strided(out, strides, at.offset)


def split_or_merge(at: Strided, out: Shape) -> tuple[int, ...] | None:
    """Strides of a general reshape: merge contiguous axes, then cut; None where the elements do not line up."""
    merged: list[tuple[Size, int]] = []
    for d, s in zip(at.shape, at.strides, strict=True):
        if d == 1:
            continue
        if merged and isinstance(d, int) and merged[-1][1] == s * d:
            merged[-1] = (merged[-1][0] * d, s)
        else:
            merged.append((d, s))
    strides: list[int] = []
    blocks = list(reversed(merged))
    rest: Size = 1  # the remaining extent of the current block, innermost axes first
    step = 1
    for d in reversed(out):
        if d == 1:
            strides.append(step)
            continue
        if rest == 1:
            if not blocks:
                return None
            rest, step = blocks.pop(0)
        strides.append(step)
        if d == rest:
            rest = 1
        elif isinstance(d, int) and (rest.coef if isinstance(rest, Dim) else rest) % d == 0:
            rest = rest // d
            step *= d
        else:
            return None
    return tuple(reversed(strides)) if rest == 1 and not blocks else None


def pick_axes(node: Node) -> tuple[tuple[int | None, ...], tuple[int, ...]]:
    """For each axis of a pick's first operand the result's axis that runs along it, None for the chosen one; and for
    each axis of the index the result's axis that runs along it."""
    lower = node.op.lower
    assert isinstance(lower, Pick)
    x, index = node.operands
    return lower.axes(x.type.shape, index.type.shape, node.attrs)


def picked_axis(node: Node) -> int:
    """The axis of a pick's first operand along which the index chooses."""
    return pick_axes(node)[0].index(None)
