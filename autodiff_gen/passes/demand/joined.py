"""Values that are joined from parts along an axis: results of `assemble`, elementwise functions of joined values, and
views of them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...ir.graph import Graph
from ...ir.node import Node, Value
from ...ir.op_kinds import Assemble, Elementwise, Range, View
from ...ir.tiles import tile_of, whole

MOST_PARTS = 8  # every part is a separate loop: a limit of the C's length and of compile time


@dataclass(frozen=True)
class Joined:
    """How a value is joined, in the same way as the assembled value `of`. ranges: in ascending order; fill: the number
    between and around the ranges, None where there are no gaps."""

    of: Value
    ranges: tuple[Range, ...]
    fill: float | None


def joined_values(graph: Graph, axis: int) -> dict[Value, Joined]:
    """The values that are joined along an axis of an assembled value."""
    found: dict[Value, Joined] = {}
    for node in graph.nodes:
        is_joined = isinstance(node.op.lower, Assemble)
        joined = _divided(node, axis) if is_joined else _through(node, found)
        if joined is not None:
            found[node.results[0]] = joined
    return found


def _divided(node: Node, axis: int) -> Joined | None:
    (y,), starts, steps = node.results, node.attrs["starts"], node.attrs["steps"]
    extent = y.type.shape[axis] if axis < y.ndim else None
    if not isinstance(extent, int) or any(step[axis] != 1 for step in steps):
        return None
    bounds = [(s[axis], s[axis] + v.type.shape[axis]) for s, v in zip(starts, node.operands, strict=True)]
    ranges = tuple([Range(axis, *ends) for ends in sorted(set(bounds))])
    overlap = any(a.stop > b.start for a, b in itertools.pairwise(ranges))
    if overlap or len(ranges) > MOST_PARTS or ranges == (whole(y, axis),):
        return None
    is_full = sum(r.stop - r.start for r in ranges) == extent
    return Joined(y, ranges, None if is_full else node.attrs["fill"])


def _through(node: Node, found: Mapping[Value, Joined]) -> Joined | None:
    """How the result of a view or of an elementwise op is joined, if an operand is joined. An elementwise op would
    change the fill: its operand must have no gaps."""
    if not isinstance(node.op.lower, Elementwise | View) or found.keys().isdisjoint(node.operands):
        return None
    (y,) = node.results
    for k, v in enumerate(node.operands):
        joined = found.get(v)
        if joined is None or (isinstance(node.op.lower, Elementwise) and joined.fill is not None):
            continue
        at = whole(v, joined.ranges[0].axis)
        for axis in (a for a, extent in enumerate(y.type.shape) if extent == at.stop):
            ranges = tuple([replace(r, axis=axis) for r in joined.ranges])
            tiles = [tile_of(node, r) for r in ranges]
            if all(t is not None and t.ranges.get(k) == r for t, r in zip(tiles, joined.ranges, strict=True)):
                return replace(joined, ranges=ranges)
    return None
