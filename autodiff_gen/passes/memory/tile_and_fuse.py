"""Tile and fuse: compute a wide value and the values that follow it, up to the next narrow ones, strip by strip, so
that no step needs more than a strip of the wide values.

    entry f(x: f32[1,4,4,2], v: f32[8,1,1,2], w: f32[3,3,8], u: f32[2,1,1,8])
      %0: f32[1,4,4,8] = conv2d(x, v, stride=(1, 1), padding=(0, 0, 0, 0), dilation=(1, 1), groups=1)
      %1: f32[1,4,4,8] = depthwise2d(%0, w, stride=(1, 1), padding=(1, 1, 1, 1), dilation=(1, 1))
      %2: f32[1,4,4,2] = conv2d(%1, u, stride=(1, 1), padding=(0, 0, 0, 0), dilation=(1, 1), groups=1)
      y <- %2
    ->
    entry f(x: f32[1,4,4,2], v: f32[8,1,1,2], w: f32[3,3,8], u: f32[2,1,1,8])
      %0: f32[1,3,4,2] = slice(x, shape=(1, 3, 4, 2), starts=(0, 0, 0, 0), steps=(1, 1, 1, 1))
      %1: f32[1,3,4,8] = conv2d(%0, v, stride=(1, 1), padding=(0, 0, 0, 0), dilation=(1, 1), groups=1)
      %2: f32[1,2,4,8] = depthwise2d(%1, w, stride=(1, 1), padding=(1, 0, 1, 1), dilation=(1, 1))
      %3: f32[1,2,4,2] = conv2d(%2, u, stride=(1, 1), padding=(0, 0, 0, 0), dilation=(1, 1), groups=1)
      %4: f32[1,3,4,2] = slice(x, shape=(1, 3, 4, 2), starts=(0, 1, 0, 0), steps=(1, 1, 1, 1))
      %5: f32[1,3,4,8] = conv2d(%4, v, stride=(1, 1), padding=(0, 0, 0, 0), dilation=(1, 1), groups=1)
      %6: f32[1,2,4,8] = depthwise2d(%5, w, stride=(1, 1), padding=(0, 1, 1, 1), dilation=(1, 1))
      %7: f32[1,2,4,2] = conv2d(%6, u, stride=(1, 1), padding=(0, 0, 0, 0), dilation=(1, 1), groups=1)
      %8: f32[1,4,4,2] = assemble(%3, %7, shape=(1, 4, 4, 2), starts=((0, 0, 0, 0), (0, 2, 0, 0)),
          steps=((1, 1, 1, 1), (1, 1, 1, 1)), fill=0.0)
      y <- %8

It is done where the arena exceeds the RAM budget, for the values that are alive at its peak. Rows that two strips need
are computed twice. Sums over the rows, such as gradients of weights, are added up over the strips.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from ...ir.graph import Graph
from ...ir.node import Value
from ...ir.origin import Origin
from ...ir.types import Type
from ..arena_use import liveness
from ..context import Context
from ..profitability import excess
from .strips import StripRegion

NUMBERS_OF_STRIPS = (2, 4, 8)  # that are tried: each strip adds steps, a limit of the C's length
MOST_REGIONS = 6  # that are tried for a peak: a limit of compile time

# A value: the origin of its node, which rewriting keeps and nodes may share, its index, and its type.
_Seed: TypeAlias = tuple[Origin, int, Type]


def tile_and_fuse(graph: Graph, context: Context) -> Graph:
    """See the module."""
    if graph.inner or context.budget is None or not excess(graph, context):
        return graph
    search, gaps = _Search(graph, context), 0
    found = {graph: _placed(graph, context)}
    while search.reached(context.budget - gaps):
        found[search.graph] = placed = _placed(search.graph, context)
        if placed <= context.budget:
            return search.graph
        gaps += placed - context.budget  # between buffers: the live bytes must be as much less
    found[search.graph] = _placed(search.graph, context)
    return min(found, key=lambda g: found[g])


def _placed(graph: Graph, context: Context) -> int:
    return liveness(graph, context).placed(context.cost.alignment)


class _Search:
    """The chosen regions, each with the axis and the number of its strips, and the graph with them. A region is named
    by the value that it was built around."""

    def __init__(self, graph: Graph, context: Context) -> None:
        self.whole = self.graph = graph
        self.context = context
        self.chosen: dict[_Seed, tuple[int, int]] = {}

    def reached(self, budget: int) -> bool:
        """Choose strips until no step has more bytes alive than the budget; whether that is possible."""
        context = replace(self.context, budget=budget)
        while excess(self.graph, context):
            if not any(self._improved(*choice, context) for choice in self._choices(context)):
                return False
        return True

    def _choices(self, context: Context) -> list[tuple[_Seed, int]]:
        """The values and axes whose regions have the most bytes that are alive at the peak."""
        regions, gains = list(self.chosen), dict[tuple[_Seed, int], int]()
        seen: set[frozenset[tuple[Value, int]]] = set()
        alive = liveness(self.graph, context).at_the_peak
        for v, axis in ((u, axis) for u in alive for axis in range(u.ndim)):
            if v.node.origin.strip is not None:  # other strips of the same region
                seed = regions[v.node.origin.strip[0]]
                if axis < len(seed[2].shape):  # of the value that it is around, which may have fewer axes
                    gains[seed, axis] = gains.get((seed, axis), 0) + v.type.bytes
                continue
            region = StripRegion.around(self.graph, v, axis)
            values = frozenset(region.axis.items()) if region is not None else frozenset()
            if values and values not in seen:
                seen.add(values)
                gains[(v.node.origin, v.index, v.type), axis] = sum(
                    u.type.bytes for u, _ in values if u in alive
                )
        return sorted(gains, key=lambda choice: -gains[choice])[:MOST_REGIONS]

    def _improved(self, seed: _Seed, axis: int, context: Context) -> bool:
        """Choose other strips around a value; whether they lower the peak. The fewest strips are chosen that meet the
        budget, or with which no strip of this region is alive at the peak; otherwise the best number."""
        least, best = liveness(self.graph, context).height, None
        bound: tuple[int, int] | None = None
        for count in NUMBERS_OF_STRIPS:
            if (axis, count) == self.chosen.get(seed):
                continue
            chosen = {**self.chosen, seed: (axis, count)}
            graph = self._with_strips(chosen)
            if graph is None:
                continue
            before, bound = bound, liveness(graph, context).least_height
            if bound >= least:
                if before is not None and bound[0] >= before[0]:
                    break  # more strips need no less
                continue
            if (height := liveness(graph, context).height) < least:
                least, best = height, (chosen, graph)
            strips = [u.node.origin.strip for u in liveness(graph, context).at_the_peak]
            if not excess(graph, context) or all(
                strip is None or strip[0] != list(chosen).index(seed) for strip in strips
            ):
                break
        if best is None:
            return False
        self.chosen, self.graph = best
        return True

    def _with_strips(self, chosen: Mapping[_Seed, tuple[int, int]]) -> Graph | None:
        """The graph with these regions in strips; None if a region cannot be computed in them."""
        key = _Search, self.whole, tuple(chosen.items())
        return self.context.analysis(key, lambda: self._in_strips(chosen))

    def _in_strips(self, chosen: Mapping[_Seed, tuple[int, int]]) -> Graph | None:
        known = list(self.chosen.items())
        more = list(chosen.items())
        if more[: len(known)] == known:  # one more region
            first, graph = len(known), self.graph
        else:
            first, graph = 0, self.whole
        for number, (seed, (axis, count)) in enumerate(more[first:], start=first):
            v = _find(graph, seed)
            region = None if v is None else StripRegion.around(graph, v, axis)
            new = None if region is None else region.in_strips(number, count)
            if new is None:
                return None
            graph = new
        return graph


def _find(graph: Graph, seed: _Seed) -> Value | None:
    origin, index, type = seed
    found = (n.results[index] for n in graph.nodes if n.origin is origin and index < len(n.results))
    return next((v for v in found if v.type == type), None)
