"""A directed acyclic graph whose topological order is maintained while edges are added and nodes are merged.

Pearce and Kelly, "A dynamic topological sort algorithm for directed acyclic graphs", 2006: a change looks only at nodes
that are ranked between the two that it connects.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class OrderedDag(Generic[T]):
    """`above[n]` are the direct predecessors of n, `below[n]` its direct successors; rank[u] < rank[v] for every edge
    from u to v."""

    def __init__(self, order: Iterable[T], above: Mapping[T, Iterable[T]]) -> None:
        """order: the nodes in a topological order; above: the predecessors of each."""
        self.rank = {n: i for i, n in enumerate(order)}
        self.above: dict[T, set[T]] = {n: set(above[n]) for n in self.rank}
        self.below: dict[T, set[T]] = {n: set() for n in self.rank}
        for n, sources in self.above.items():
            for source in sources:
                self.below[source].add(n)

    def add_edge(self, u: T, v: T) -> bool:
        """Add the edge from u to v; False, and nothing is changed, when it would close a cycle."""
        if u == v:
            return False
        low, high = self.rank[v], self.rank[u]
        if low < high:
            after = self._between(self.below, v, low, high)
            if any(u in self.below[n] for n in (v, *after)):
                return False
            before = self._between(self.above, u, low, high)
            self._rank_again([*before, u], [v, *after])
        self.below[u].add(v)
        self.above[v].add(u)
        return True

    def has_path_through_others(self, u: T, v: T) -> bool:
        """Whether a path other than an edge leads from one of two nodes to the other."""
        if self.rank[u] > self.rank[v]:
            u, v = v, u
        low, high = self.rank[u], self.rank[v]
        visited: tuple[set[T], set[T]] = (set(), set())
        pending = ([n for n in self.below[u] if n != v], [n for n in self.above[v] if n != u])
        edges, ends = (self.below, self.above), (v, u)
        side = 0
        while (
            pending[0] and pending[1]
        ):  # one step from each end alternately: the side that ends first decides
            n = pending[side].pop()
            if low < self.rank[n] < high and n not in visited[side]:
                if n in visited[1 - side] or ends[side] in edges[side][n]:
                    return True
                visited[side].add(n)
                pending[side].extend(edges[side][n])
            side = 1 - side
        return False

    def merge(self, u: T, v: T) -> None:
        """Make v part of u; there is no path from one to the other through others."""
        first, second = (u, v) if self.rank[u] < self.rank[v] else (v, u)
        low, high = self.rank[first], self.rank[second]
        if high - low > 1:
            before = self._between(self.above, second, low, high)
            after = self._between(self.below, first, low, high)
            if before or after:
                self._rank_again([*before, first], [second, *after])
        self.rank[u] = self.rank[first]
        del self.rank[v]
        for edges, reverse in ((self.above, self.below), (self.below, self.above)):
            moved, mine = edges.pop(v), edges[u]
            for n in moved:
                reverse[n].discard(v)
                if n != u:
                    reverse[n].add(u)
            mine |= moved
            mine -= {u, v}

    def _between(self, edges: Mapping[T, set[T]], start: T, low: int, high: int) -> list[T]:
        """The nodes of a rank between `low` and `high` that are reached from `start`, by rank."""
        visited: set[T] = set()
        pending = [start]
        while pending:
            for n in edges[pending.pop()]:
                if low < self.rank[n] < high and n not in visited:
                    visited.add(n)
                    pending.append(n)
        return sorted(visited, key=self.rank.__getitem__)

    def _rank_again(self, before: list[T], after: list[T]) -> None:
        """Give the ranks of all these nodes to `before` and then to `after`."""
        nodes = [*before, *after]
        for n, rank in zip(nodes, sorted(self.rank[n] for n in nodes), strict=True):
            self.rank[n] = rank
