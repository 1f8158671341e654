"""Cuts: the parts of operands that a node needs to compute a part of its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from ...ir.graph import Graph
from ...ir.node import Node, Value
from ...ir.op_kinds import Assemble, Attrs, Iota, Pick, Range, Scan, ViewKind
from ...ir.tiles import indices, shape_of, tile_of, whole
from ...ir.traits import is_plain_product, view_kind
from ...ir.types import planned


@dataclass(frozen=True)
class Picked:
    """The elements at these indices along an axis."""

    axis: int
    index: Value


Part: TypeAlias = Range | Picked


@dataclass(frozen=True)
class Cut:
    """The operands that a node needs, each with its part, None for the whole, and the attributes that change."""

    needs: Sequence[tuple[Value, Part | None]]
    changes: Attrs = field(default_factory=dict)


def cut_of(node: Node, part: Part, graph: Graph) -> Cut | None:
    """The parts of the operands from which a part of the results is computed; None where only the whole can be
    computed. Like tile_of (ir/tiles.py), but also for joined values, loops, and rows of each sample."""
    lower, y = node.op.lower, node.results[0]
    if isinstance(part, Picked):
        tile = tile_of(node, whole(y, part.axis)) if isinstance(y.type.shape[part.axis], int) else None
        if tile is None or tile.changes:
            return None
        return _cut(node, {k: replace(part, axis=r.axis) for k, r in tile.ranges.items()})
    rows = rows_of(node, graph)
    if rows is not None and part.axis < y.ndim - 1:
        return Cut([(rows[0], part), (rows[1], None)])
    if isinstance(lower, Scan):
        first = node.attrs["carries"]
        elements = {k: replace(part, axis=0) for k in range(first, first + node.attrs["xs"])}
        return _cut(node, elements, {"length": part.stop - part.start})
    if isinstance(lower, Iota):
        return Cut([], indices(node, part).node.attrs)
    if isinstance(lower, Assemble):
        return _of_joined(node, part)
    tile = tile_of(node, part)
    return None if tile is None else _cut(node, tile.ranges, tile.changes)


def _cut(node: Node, parts: Mapping[int, Part], changes: Attrs | None = None) -> Cut:
    return Cut([(v, parts.get(k)) for k, v in enumerate(node.operands)], changes or {})


def _of_joined(node: Node, at: Range) -> Cut | None:
    """The operands that have elements in a range of a joined value; None where none has."""
    found = []
    for v, start, step in zip(node.operands, node.attrs["starts"], node.attrs["steps"], strict=True):
        places = [start[at.axis] + i * step[at.axis] for i in range(whole(v, at.axis).stop)]
        inside = [i for i, place in enumerate(places) if at.start <= place < at.stop]
        if inside:
            first = (*start[: at.axis], places[inside[0]] - at.start, *start[at.axis + 1 :])
            found.append((v, Range(at.axis, inside[0], inside[-1] + 1), first, step))
    shape = shape_of(node.results[0].type.shape, at)
    starts, steps = (tuple([each[k] for each in found]) for k in (2, 3))
    changes = {"shape": shape, "starts": starts, "steps": steps}
    return Cut([(v, r) for v, r, *_ in found], changes) if found else None


def iterations(node: Node, read: Sequence[tuple[Value, Part | None]]) -> dict[Value, tuple[Part, ...]]:
    """The ranges of the results of a scan up to the last iteration that is read. A reverse scan begins at the first
    iteration that is read. Empty where a final carry is read, or all iterations are."""
    stacks = dict(zip(node.results[node.attrs["carries"] :], node.attrs["axes"], strict=True))
    known = [part for v, part in read if isinstance(part, Range) and part.axis == stacks.get(v)]
    if len(known) < len(read):
        return {}
    length, is_reverse = node.attrs["length"], node.attrs["reverse"]
    start = min(r.start for r in known) if is_reverse else 0
    stop = length if is_reverse else max(r.stop for r in known)
    return {} if stop - start == length else {v: (Range(axis, start, stop),) for v, axis in stacks.items()}


def rows_of(node: Node, graph: Graph) -> tuple[Value, Value] | None:
    """x and w of y = reshape(matmul(reshape(x), w)), a product of all rows of x. x and y have the same axes except the
    columns, and nothing else reads the values between them."""
    if view_kind(node) is not ViewKind.RESHAPE or not is_plain_product(node.operands[0].node):
        return None
    rows, shape = node.operands[0], node.results[0].type.shape
    a, w = rows.node.operands
    between = [rows, a]
    if view_kind(a.node) is not ViewKind.RESHAPE or any(len(graph.users[v]) > 1 for v in between):
        return None
    (x,), lead = a.node.operands, len(shape) - 1
    aligned = x.type.shape[:lead] == shape[:lead] and rows.type.shape[1:] == shape[lead:]
    return (x, w) if aligned and not {*graph.roots}.intersection(between) else None


def picked(node: Node) -> Cut | None:
    """The cut of a pick that selects fewer elements along an axis than there are, and reads all other axes in order.
    None for other picks."""
    x, index = node.operands
    assert isinstance(node.op.lower, Pick)
    of_x, of_index = node.op.lower.axes(x.type.shape, index.type.shape, node.attrs)
    if len(of_index) != 1 or of_x.count(None) != 1:
        return None
    axis = of_x.index(None)
    in_order = all(a == k for k, a in enumerate(of_x) if k != axis) and of_index == (axis,)
    sizes = planned((x.type.shape[axis], *index.type.shape))
    return Cut([(x, Picked(axis, index)), (index, None)]) if in_order and sizes[1] < sizes[0] else None
