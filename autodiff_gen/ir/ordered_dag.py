"""A directed acyclic graph whose topological order is maintained while edges are added and nodes are merged.

As in Pearce and Kelly, "A dynamic topological sort algorithm for directed acyclic graphs", 2006, a change looks only at
nodes that are ranked between the two that it connects. Ranks are numbers with room between them, so only the nodes on
one side of the change move: on the side where a search ends first.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from itertools import pairwise
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class OrderedDag(Generic[T]):
    """`above[n]` are the direct predecessors of n, `below[n]` its direct successors; rank[u] < rank[v] for every edge
    from u to v."""

    def __init__(self, order: Iterable[T], above: Mapping[T, Iterable[T]]) -> None:
        """order: the nodes in a topological order; above: the predecessors of each."""
        self.rank = {n: float(i) for i, n in enumerate(order)}
        self.above: dict[T, set[T]] = {n: set(above[n]) for n in self.rank}
        self.below: dict[T, set[T]] = {n: set() for n in self.rank}
        for n, sources in self.above.items():
            for source in sources:
                self.below[source].add(n)

    def add_edge(self, u: T, v: T) -> bool:
        """Add the edge from u to v; False, and nothing is changed, when it would close a cycle."""
        if u == v or u in self.below[v]:
            return False
        if self.rank[v] <= self.rank[u]:
            found = self._between(v, u)
            if found is None:
                return False
            before, nodes = found
            self._move(nodes | {u if before else v}, v if before else u, before)
        self.below[u].add(v)
        self.above[v].add(u)
        return True

    def has_path_through_others(self, u: T, v: T) -> bool:
        """Whether a path other than an edge leads from one of two nodes to the other."""
        return self._between(*self._ranked(u, v)) is None

    def merge(self, u: T, v: T) -> None:
        """Make v part of u; there is no path from one to the other through others."""
        first, second = self._ranked(u, v)
        found = self._between(first, second)
        assert found is not None, "a path through others leads from one of the nodes to the other"
        before, nodes = found
        kept = first if before else second
        self._move(nodes, kept, before)
        self.rank[u] = self.rank[kept]
        del self.rank[v]
        for edges, reverse in ((self.above, self.below), (self.below, self.above)):
            moved, mine = edges.pop(v), edges[u]
            for n in moved:
                reverse[n].discard(v)
                if n != u:
                    reverse[n].add(u)
            mine |= moved
            mine -= {u, v}

    def _ranked(self, u: T, v: T) -> tuple[T, T]:
        return (u, v) if self.rank[u] < self.rank[v] else (v, u)

    def _between(self, first: T, second: T) -> tuple[bool, set[T]] | None:
        """The nodes ranked between two that come before the second one (True) or after the first one (False): one step
        from each end alternately, the side that ends first decides. None where a path leads through them from the first
        to the second."""
        low, high, ends = self.rank[first], self.rank[second], (second, first)
        edges, visited = (self.below, self.above), (set[T](), set[T]())
        pending = [*self.below[first]], [*self.above[second]]
        side = 0
        while pending[side]:
            n = pending[side].pop()
            if low <= self.rank[n] <= high and n not in ends and n not in visited[side]:
                if n in visited[1 - side] or ends[side] in edges[side][n]:
                    return None
                visited[side].add(n)
                pending[side].extend(edges[side][n])
            side = 1 - side
        return side == 1, visited[side]

    def _move(self, nodes: set[T], to: T, before: bool) -> None:
        """Rank nodes right before or after another, in their order."""
        if not nodes:
            return
        edges, ordered = self.above if before else self.below, sorted(nodes, key=self.rank.__getitem__)
        near = {n for m in nodes for n in edges[m]} - nodes
        for _ in range(2):
            at, own = self.rank[to], [self.rank[n] for n in near]
            low, high = (max(own, default=at - 1), at) if before else (at, min(own, default=at + 1))
            step = (high - low) / (len(nodes) + 1)
            ranks = [low, *(low + k * step for k in range(1, len(nodes) + 1)), high]
            if all(a < b for a, b in pairwise(ranks)):
                break
            # no room is left
            self.rank = {n: float(k) for k, n in enumerate(sorted(self.rank, key=self.rank.__getitem__))}
        self.rank.update(zip(ordered, ranks[1:-1], strict=True))
