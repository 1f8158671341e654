"""Values that larger ones contain: the largest of nested concatenations, as in the dense blocks of a DenseNet, has all
others and all parts as windows, so that only the largest need be stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...ir.node import Node, Value
from ...ir.op_kinds import Assemble
from ...ir.types import planned_size
from ...ops.movement.slices import window

WindowIn = tuple[Value, tuple[int, ...]]  # the larger value, and where in it a value begins


def contained(nodes: Sequence[Node]) -> dict[Value, WindowIn]:
    """The values that the largest concatenations of these nodes contain, each with its place. A concatenation is only
    counted if it contains another one."""
    parts = {
        n.results[0]: p for n in nodes if isinstance(n.op.lower, Assemble) and (p := _parts(n)) is not None
    }
    found: dict[Value, WindowIn] = {}
    for y in sorted(parts, key=lambda v: -v.type.bytes):
        if y in found:
            continue
        inside = {v: at for v, at in ((v, _place(parts[v], parts[y])) for v in parts if v is not y) if at}
        for v, at in {**parts[y], **inside}.items() if inside else ():
            found.setdefault(v, (y, at))
    return found


def read_in(place: WindowIn, v: Value) -> Value:
    """A contained value as a window of the one that contains it."""
    return window(place[0], v.type.shape, place[1], (1,) * v.ndim)


def _parts(node: Node) -> Mapping[Value, tuple[int, ...]] | None:
    """Where the parts of a concatenation begin. None if parts leave gaps or have steps, or if a part occurs twice."""
    starts, steps = node.attrs["starts"], node.attrs["steps"]
    size = sum(planned_size(v.type.shape) for v in node.operands)
    if len({*node.operands}) < len(starts) or size < planned_size(node.results[0].type.shape):
        return None
    if any(step != 1 for each in steps for step in each):
        return None
    return dict(zip(node.operands, starts, strict=True))


def _place(
    smaller: Mapping[Value, tuple[int, ...]], larger: Mapping[Value, tuple[int, ...]]
) -> tuple[int, ...]:
    """Where a concatenation begins in a larger one, by the places of their parts; empty if it is not in it."""
    if not smaller.keys() < larger.keys():
        return ()
    shifts = {tuple(b - a for a, b in zip(smaller[v], larger[v], strict=True)) for v in smaller}
    return shifts.pop() if len(shifts) == 1 else ()
