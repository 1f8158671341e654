"""Regions that are computed strip by strip: the values and nodes of a region, and the graph with the region in
strips."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from ...ir.added_terms import added, added_term, adding_op, with_term
from ...ir.build import apply
from ...ir.graph import Graph
from ...ir.node import Node, Value
from ...ir.op_kinds import Elementwise, Iota, Leaf, Range, Tile, View
from ...ir.origin import Label, building_as
from ...ir.rewrite import rewritten
from ...ir.tiles import (
    axis_of_result,
    computed,
    indices,
    part_of,
    term_of,
    tile_of,
    whole,
)
from ...ir.traits import is_fusable


class _Infeasible(Exception):
    """A value cannot be computed in strips."""


class StripRegion:
    """axis: the values that are computed in strips, and along which axis. maps, sums: the nodes that read these values
    and have narrow results. The result of a map is assembled from strips along an axis. The result of a sum is added up
    over the strips of an operand; `sums` has the node of the term and the number of the operand. A result is wide if it
    has more than `limit` bytes."""

    def __init__(self, graph: Graph, limit: int) -> None:
        self.graph, self.limit, self.users = graph, limit, graph.users
        self.kept = graph.outside_arena
        self.axis: dict[Value, int] = {}
        self.maps: dict[Node, int] = {}
        self.sums: dict[Node, tuple[Node, int]] = {}

    @classmethod
    def around(cls, graph: Graph, v: Value, axis: int) -> StripRegion | None:
        """The largest region around a value. None where a node needs a whole value, or where a strip needs a result of
        the region. Values that are larger than half of v are wide."""
        region = cls(graph, v.type.bytes // 2)
        try:
            region._add(v, axis)
            region._add_operands()
        except _Infeasible:
            return None
        return region if region._is_closed() else None

    def _add(self, v: Value, axis: int) -> None:
        """Compute a value in strips, and the wide results of its readers."""
        pending = [(v, axis)]
        while pending:
            v, axis = pending.pop()
            if v in self.axis:
                if self.axis[v] != axis:
                    raise _Infeasible
                continue
            extent = v.type.shape[axis]
            if v in self.kept or not isinstance(extent, int) or extent < 2 or not _has_tiles(v, axis):
                raise _Infeasible
            self.axis[v] = axis
            for node in self.users.get(v, ()):
                pending += self._reader(node, v, axis)

    def _reader(self, node: Node, v: Value, axis: int) -> list[tuple[Value, int]]:
        """The result of a node that reads v, with its axis, if the result is wide too. Otherwise the node joins `maps`
        or `sums`, and the list is empty."""
        (operand, *more) = (k for k, u in enumerate(node.operands) if u is v)
        if more:
            raise _Infeasible
        along = axis_of_result(node, operand, axis)
        if along is not None:
            (y,) = node.results
            if self._is_wide(y):
                return [(y, along)]
            self.maps[node] = along
        else:
            term = added_term(node)
            operand = next(k for k, u in enumerate(term.operands) if u is v) if v in term.operands else -1
            if operand < 0 or term_of(term, operand, whole(v, axis)) is None:
                raise _Infeasible
            self.sums[node] = term, operand
        return []

    def _is_wide(self, v: Value) -> bool:
        """Whether a result is computed in strips: it needs much memory, is a view, or needs more memory than the values
        that are computed from it."""
        if v in self.kept:
            return False
        return v.type.bytes > self.limit or isinstance(v.node.op.lower, View) or self._after(v) < v.type.bytes

    def _after(self, v: Value) -> int:
        """The bytes of the values that are computed from a value and stored: loops store only the last of a chain of
        elementwise values."""
        size, pending, seen = 0, [v], {v}
        while pending:
            for n in self.users.get(pending.pop(), ()):
                for r in n.results:
                    if isinstance(n.op.lower, Elementwise) and r not in self.kept and r not in seen:
                        seen.add(r)
                        pending.append(r)
                    elif r not in seen:
                        seen.add(r)
                        size += r.type.bytes
        return size

    def _add_operands(self) -> None:
        """Compute operands in strips too, if only the region reads them and they are wide or need not be stored."""
        pending = [*(v.node for v in self.axis), *self.maps, *self.sums]
        inside = set(pending)
        while pending:
            for u, at in self._ranges(pending.pop()):
                small = u.type.bytes <= self.limit and not is_fusable(u.node)
                view = isinstance(u.node.op.lower, View)
                if u in self.axis or u in self.kept or (small and not view) or not _has_tiles(u, at.axis):
                    continue
                if inside.issuperset(self.users[u]):
                    self.axis[u] = at.axis
                    inside.add(u.node)
                    pending = list(inside)

    def _ranges(self, node: Node) -> list[tuple[Value, Range]]:
        """The operands that are needed in strips for a strip of a node."""
        if not node.operands:
            return []
        if node in self.sums:
            node, operand = self.sums[node]
            v = node.operands[operand]
            tile = term_of(node, operand, whole(v, self.axis[v]))
        else:
            (y,) = node.results
            tile = tile_of(node, whole(y, self.maps.get(node, self.axis.get(y, 0))))
        assert tile is not None
        return [(node.operands[k], at) for k, at in tile.ranges.items()]

    def _is_closed(self) -> bool:
        """Whether nothing that a strip needs depends on results of the region."""
        ends = {*self.maps, *self.sums}
        after: set[Node] = set()
        for n in self.graph.nodes:
            if any(u.node in ends or u.node in after for u in n.operands):
                after.add(n)
        members = {*(v.node for v in self.axis), *ends}
        return bool(ends) and after.isdisjoint(members)

    def in_strips(self, number: int, count: int) -> Graph | None:
        """The graph with the region computed in `count` strips; None where a strip cannot be computed. number: the
        region's number, which the nodes of the strips have in their origin."""
        strips = _Strips(self.axis, number)
        parts, sums = dict[Node, list[Value]](), dict[Node, Value]()
        outside = self.graph.outside_arena
        try:
            for k in range(count):
                for node, axis in self.maps.items():
                    at = _split(node.results[0], axis, count)[k]
                    parts.setdefault(node, []).append(strips.computed(node, tile_of(node, at), k))
                for node, (of, operand) in self.sums.items():
                    v = of.operands[operand]
                    at = _split(v, self.axis[v], count)[k]
                    term = strips.computed(of, term_of(of, operand, at), k)
                    is_result = any(r.base in outside for r in node.results)
                    sums[node] = strips.sum(sums[node], term, is_result) if k else term
        except _Infeasible:
            return None
        made = {n: _assembled(n, axis, parts[n]) for n, axis in self.maps.items()}
        for n, total in sums.items():
            with building_as(n.origin):
                made[n] = with_term(n, total)
        return rewritten(self.graph, lambda node, _: (made[node],), made)


def _has_tiles(v: Value, axis: int) -> bool:
    node = v.node
    if isinstance(node.op.lower, Leaf) or node.regions or not isinstance(v.type.shape[axis], int):
        return False
    return isinstance(node.op.lower, Iota) or tile_of(node, whole(v, axis)) is not None


def _split(v: Value, axis: int, count: int) -> list[Range]:
    """Ranges that make up an axis of v. Where v is a view that merges axes of another value, the ranges are whole rows
    of that value."""
    extent = rows = whole(v, axis).stop
    tile = tile_of(v.node, whole(v, axis)) if isinstance(v.node.op.lower, View) else None
    if tile is not None and 0 in tile.ranges and extent % tile.ranges[0].stop == 0:
        rows = tile.ranges[0].stop
    if count > rows:
        raise _Infeasible
    bounds = [rows * k // count * (extent // rows) for k in range(count + 1)]
    return [Range(axis, *ends) for ends in itertools.pairwise(bounds)]


class _Strips:
    """The strips of values that have been computed, by their ranges."""

    def __init__(self, axis: dict[Value, int], region: int) -> None:
        self.axis, self.region = axis, region
        self.made: dict[Value, dict[tuple[int, int], Value]] = {}

    def computed(self, node: Node, tile: Tile | None, k: int) -> Value:
        """The result of a node for strip k."""
        if tile is None:
            raise _Infeasible
        ranges, origin, (y,) = tile.ranges, node.origin, node.results
        operands = [self._part(u, ranges[i], k) if i in ranges else u for i, u in enumerate(node.operands)]
        with building_as(origin):
            new = computed(node, tile, tuple(operands))
        labels = {} if isinstance(node.op.lower, View) else {0: Label("strip", copy_of=y)}
        strip = (self.region, k)
        new.origin = replace(origin, labels=labels, strip=strip, result_of=None)
        return new.results[0]

    def sum(self, total: Value, term: Value, is_result: bool) -> Value:
        """The total so far plus the term of a strip. A product is accumulated into the memory of the total, unless the
        sum is a result of the graph, whose memory the first term does not have."""
        origin = term.node.origin
        with building_as(origin):
            in_place = adding_op(term.node) and not is_result
            new = added(term, total) if in_place else apply("add", total, term)
        labels = {0: origin.labels[0]}
        new.node.origin = replace(origin, labels=labels, recomputed=False, result_of=None)
        return new

    def _part(self, v: Value, at: Range, k: int) -> Value:
        """A range of an operand: computed for strip k, or a slice of a value that is already computed."""
        if isinstance(v.node.op.lower, Iota):
            return indices(v.node, at)
        if self.axis.get(v) != at.axis:
            return part_of(v, at)
        made = self.made.setdefault(v, {})
        for (start, stop), strip in made.items():
            if start <= at.start and at.stop <= stop:
                return part_of(strip, Range(at.axis, at.start - start, at.stop - start))
        made[at.start, at.stop] = self.computed(v.node, tile_of(v.node, at), k)
        return made[at.start, at.stop]


def _assembled(node: Node, axis: int, parts: Sequence[Value]) -> Value:
    """The whole result of a node, assembled from its strips."""
    (y,) = node.results
    stops = itertools.accumulate(whole(p, axis).stop for p in parts)
    starts = [stop - whole(p, axis).stop for stop, p in zip(stops, parts, strict=True)]
    corners = tuple(tuple(start if a == axis else 0 for a in range(y.ndim)) for start in starts)
    steps = ((1,) * y.ndim,) * len(parts)
    with building_as(node.origin):
        return apply("assemble", *parts, shape=y.type.shape, starts=corners, steps=steps, fill=0.0)
