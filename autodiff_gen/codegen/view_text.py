"""Views and parts of arrays in NumPy's notation, as comments show them."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.node import Node, Value
from ..ir.op_kinds import Reduce, View, ViewKind
from ..ir.types import Shape
from ..lowering.c import c_syntax


def viewed(v: Value, name: str) -> str:
    """The name of memory seen through the views that make v of it."""
    if not isinstance(v.node.op.lower, View):
        return name
    return view_text(v.node, viewed(v.node.operands[0], name))


def windows_of(v: Value, name: str) -> str:
    """The name of memory with the part of it that v is, whatever the order of axes."""
    lower = v.node.op.lower
    if not isinstance(lower, View):
        return name
    (operand,) = v.node.operands
    return windows_of(operand, name) + (_window_of(v.node) if lower.window else "")


def view_text(node: Node, text: str) -> str:
    """A text seen through a view: as it is where the order of axes stays, primed for a transposed matrix."""
    lower, (operand,) = node.op.lower, node.operands
    assert isinstance(lower, View)
    shape = node.results[0].type.shape
    dims = lower.dims(operand.type.shape, shape, node.attrs)
    kept = [d for d in dims or () if d is not None]
    if lower.kind is ViewKind.WINDOWS:
        return f"windows({text})"
    if not lower.window and kept == sorted(kept):
        mark = _inserted(node) if not text[-1:].isdigit() or text[:1].isalpha() else ""
    elif not lower.window and dims != (1, 0):
        order = f", {node.attrs['dims']}" if "dims" in node.attrs else ""
        return f"{node.op.name}({text}{order})"
    else:
        mark = _window_of(node) if lower.window else "'"
    return f"({text}){mark}" if mark and " " in text else text + mark


def _window_of(node: Node) -> str:
    (operand,), (result,) = node.operands, node.results
    return window(node.attrs["starts"], node.attrs["steps"], result.type.shape, operand.type.shape)


def _inserted(node: Node) -> str:
    """`[:, None]`: axes that a view adds after others, so that they line up with the axes of another operand."""
    (operand,), shape = node.operands, node.results[0].type.shape
    old = list(operand.type.shape)
    if len(old) >= len(shape) or isinstance(operand.base.node.op.lower, Reduce):
        return ""
    parts = []
    for size in shape:
        same = bool(old) and size == old[0]
        parts.append(":" if same else "None")
        old = old[1:] if same else old
    while parts and parts[0] == "None":
        parts = parts[1:]
    return f"[{', '.join(parts)}]" if not old and "None" in parts else ""


def joined_axis(node: Node) -> int | None:
    """The axis along which parts that are joined follow each other without a gap; None where they do not."""
    shape, starts = node.results[0].type.shape, node.attrs["starts"]
    for axis, whole in enumerate(shape):
        at = 0
        for k in sorted(range(len(starts)), key=lambda k: starts[k][axis]):
            extents = node.operands[k].type.shape
            size = extents[axis]
            others = all(i == axis or (starts[k][i], d) == (0, shape[i]) for i, d in enumerate(extents))
            is_next = starts[k][axis] == at and set(node.attrs["steps"][k]) == {1}
            if not others or not is_next or not isinstance(size, int):
                break
            at += size
        else:
            if at == whole and len(starts) > 1:
                return axis
    return None


def window(starts: Sequence[int], steps: Sequence[int], shape: Shape, of: Shape) -> str:
    """`[..., 20:40]`: a part of something, in NumPy's notation."""
    parts = []
    for start, step, size, whole in zip(starts, steps, shape, of, strict=True):
        every = (start, step) == (0, 1) and size == whole
        stop = c_syntax.extent(size * step + start if isinstance(size, int) else size * step)
        parts.append(":" if every else f"{start}:{stop}" + (f":{step}" if step != 1 else ""))
    while len(parts) > 1 and parts[0] == parts[1] == ":":
        parts = parts[1:]
    return f"[{', '.join(['...' if len(parts) > 1 and parts[0] == ':' else parts[0], *parts[1:]])}]"
