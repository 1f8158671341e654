"""Values that are stored because a loop nest reads them in two passes: before a sum is complete, and after it.

    for i in n: s += where(y[i] <= 0, 0, d[i])               for i in n: d[i] = where(y[i] <= 0, 0, d[i]); s += d[i]
    for i in n: x[i] = where(y[i] <= 0, 0, d[i]) - s    ->   for i in n: x[i] = d[i] - s

The value reuses the buffer of an operand that nothing else reads, so it needs no more memory, and the second pass reads
the value instead of that operand. The cost table says whether a store costs less than the operations and the other
loads of the second pass.
"""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

from ...ir.graph import Graph
from ...ir.node import Node, Value
from ...ir.op_kinds import Elementwise, Leaf, Reduce
from ...ir.traits import is_free
from ...ir.types import DType, Shape
from ..costs import is_stored_between_passes
from .groups import Groups

_Array: TypeAlias = tuple[DType, Shape]


def stored_between_passes(graph: Graph, groups: Groups, needed: set[Value]) -> set[Value]:
    """The values of all groups that are stored between two passes. `needed`: values that are stored anyway."""
    return _Search(graph, groups, needed).found()


class _Search:
    def __init__(self, graph: Graph, groups: Groups, needed: set[Value]) -> None:
        self.graph, self.groups, self.needed = graph, groups, needed
        self.order = {n: i for i, n in enumerate(graph.nodes)}
        self.roots = graph.outside_arena
        self.times = Counter(n for group in groups.groups.values() for n in group.nodes)

    def found(self) -> set[Value]:
        found: set[Value] = set()
        for group in self.groups.groups.values():
            if any(isinstance(n.op.lower, Reduce) for n in group.nodes):
                found |= self._of_group(sorted(group.nodes, key=self.groups.position.__getitem__))
        return found

    def _of_group(self, members: list[Node]) -> set[Value]:
        inside = {r for n in members for r in n.results}
        replaced: dict[Node, Value] = {}  # candidate -> the array whose buffer it can reuse
        sums: dict[Node, set[Node]] = {}  # the reductions on whose results a node depends
        summed: dict[Node, set[Node]] = {}  # the candidates that such a reduction reads
        early: dict[Node, set[Node]] = {}  # the candidates that a node reads with no reduction between
        twice: set[Node] = set()
        for n in members:
            sources = [v.base.node for v in n.operands if v.base in inside]
            sums[n] = set().union(*(sums[s] for s in sources))
            early[n] = set().union(*(early[s] for s in sources))
            if isinstance(n.op.lower, Reduce):
                (terms,) = n.operands
                summed[n] = {c for c in early[n] if _array(c.results[0]) == _array(terms)}
                early[n] = set()
                sums[n] = sums[n] | {n}
                continue
            twice |= {c for c in early[n] for r in sums[n] if c in summed[r]}
            place = self._replaced(n, inside, replaced)
            if place is not None and n.results[0] not in self.needed:
                replaced[n] = place
                early[n] = early[n] | {n}
        found = set()
        room = self._room(members, inside, sums) if twice else Counter()
        for n in members:
            (v,) = n.results if n in twice else (None,)
            if v is None or any(u in twice for u in self.graph.users[v]) or not room[_array(v)]:
                continue
            if self._pays(n, replaced[n], inside):
                room[_array(v)] -= 1
                found.add(v)
        return found

    def _replaced(self, node: Node, inside: set[Value], replaced: dict[Node, Value]) -> Value | None:
        """A stored array as large as the result of a cheap elementwise node, if only the node's expression reads it.
        None for other nodes, and for a node that several groups compute."""
        lower = node.op.lower
        if not isinstance(lower, Elementwise) or not lower.cheap or self.times[node] > 1:
            return None
        for v in node.operands:
            source = v.base
            if isinstance(source.node.op.lower, Leaf) or source in self.roots:
                continue
            place = replaced.get(source.node) if source in inside else source
            if place is None or _array(place) != _array(node.results[0]):
                continue
            if [*self.graph.readers(source)] == [node]:
                return place
        return None

    def _room(self, members: list[Node], inside: set[Value], sums: dict[Node, set[Node]]) -> Counter[_Array]:
        """How many more arrays of each size a group may store: one for each array that no later step reads. Results of
        the second pass reuse the buffers of such arrays; results of the first pass reuse none that the second pass
        reads."""
        own, first = set(members), self.order[members[0]]
        read = {v.base for n in members for v in n.operands} - inside - self.roots
        dying = [
            v
            for v in read
            if not isinstance(v.node.op.lower, Leaf)
            and all(n in own or self.order[n] < first for n in self.graph.readers(v))
        ]
        early = {v for v in (inside & self.needed) - self.roots if not sums[v.node]}
        again = self._read_after(members, inside, sums)
        room = Counter(map(_array, dying))
        room.subtract(Counter(map(_array, early)) & Counter(_array(v) for v in dying if v not in again))
        return room

    def _read_after(self, members: list[Node], inside: set[Value], sums: dict[Node, set[Node]]) -> set[Value]:
        """The values that a group reads after one of its sums is complete, directly or through expressions that are not
        stored."""
        found: set[Value] = set()
        pending = [
            v.base for n in members if sums[n] and not isinstance(n.op.lower, Reduce) for v in n.operands
        ]
        while pending:
            v = pending.pop()
            if v in found:
                continue
            found.add(v)
            if v in inside and v not in self.needed and isinstance(v.node.op.lower, Elementwise):
                pending += [u.base for u in v.node.operands]
        return found

    def _pays(self, node: Node, replaced: Value, inside: set[Value]) -> bool:
        """Whether a store costs less than computing the value again."""
        operations, loads, pending = 0, set[Value](), [node]
        while pending:
            n = pending.pop()
            operations += 1
            for v in n.operands:
                source = v.base
                lower = source.node.op.lower
                if source in inside and source not in self.needed and isinstance(lower, Elementwise):
                    pending.append(source.node)
                elif source is not replaced and not is_free(source.node):
                    loads.add(source)
        return is_stored_between_passes(self.groups.cost, operations, len(loads))


def _array(v: Value) -> _Array:
    """A key that is equal for arrays that can reuse each other's buffer."""
    return v.type.dtype, tuple(d for d in v.type.shape if d != 1)
