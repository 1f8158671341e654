"""Split the update of a state off a fused node that reads the old value again after the update. The update follows in a
separate loop, and no copy of the old value is needed.

    %0, w' = fused(x, w):              %0, %1 = fused(x, w):
      %2 = sum(x)                        %2 = sum(x)
      yield mul(x, w), sub(w, %2)  ->    yield mul(x, w), %2
                                       w' = sub(w, %1)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...ir.dependences import state_of
from ...ir.graph import Graph, State
from ...ir.node import Node, Region, Value, base, users
from ...ir.op_kinds import Elementwise, View
from ...ir.rewrite import rewritten
from ...ir.traits import is_free
from .fused_node import FUSED


def split_updates(graph: Graph, late: Sequence[tuple[Node, int]]) -> Graph:
    """The graph in which the updates of states are split off fused nodes, where that is possible. late: fused nodes,
    each with the number of an operand that is a view of such a state."""
    states: dict[Node, set[State]] = {}
    for node, i in late:
        state = state_of(node.operands[i])
        assert state is not None
        states.setdefault(node, set()).add(state)
    written = {state: new.base for state, new in graph.updates.items()}

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...] | None:
        own = {state: new.index for state, new in written.items() if new.node is node}
        outside = {index for state, index in own.items() if state in states[node]}
        params = zip(node.regions[0].params, node.operands, strict=True)
        overwritten = {p for p, v in params if state_of(v) in own.keys() - states[node]}
        return _Split(node, operands, outside, overwritten).results()

    return rewritten(graph, rewrite, states)


@dataclass
class _Split:
    """A fused node over new operands. indices: its results that are computed outside; overwritten: its params that are
    states that it updates inside."""

    node: Node
    operands: tuple[Value, ...]
    indices: set[int]
    overwritten: set[Value]

    def results(self) -> tuple[Value, ...] | None:
        """The results of the two halves in the old order. None where nothing would be left inside, or where the inside
        reads the updates."""
        region = self.node.regions[0]
        stays = [r for i, r in enumerate(region.results) if i not in self.indices]
        moved = self._moved(region, stays)
        if moved is None:
            return None
        read = [v for n in region.nodes if n in moved for v in n.operands if v.node not in moved]
        cut = [v.base for v in read if not is_free(v.base.node)]
        inside = list(dict.fromkeys([*stays, *(v for v in cut if v not in region.params)]))
        if not inside:
            return None
        outer = dict(zip(region.params, self.operands, strict=True))
        needed = Region(region.params, tuple(inside))
        used = {v for n in needed.nodes for v in n.operands} | set(inside)
        params = tuple(p for p in region.params if p in used)
        made = Node(
            FUSED,
            tuple(outer[p] for p in params),
            {},
            tuple(v.type for v in inside),
            (Region(params, tuple(inside)),),
        )
        outer.update(zip(inside, made.results, strict=True))
        views = {v.node for r in read for v in _views(r)}
        for n in region.nodes:
            if n in moved or n in views:
                copy = n.with_operands(tuple(outer.get(v, v) for v in n.operands))
                outer.update(zip(n.results, copy.results, strict=True))
        return tuple(outer[r] for r in region.results)

    def _moved(self, region: Region, stays: Sequence[Value]) -> set[Node] | None:
        """The updates, and arithmetic that only the updates read, if the node does not overwrite its operands. None
        where an update cannot be moved."""
        read_by = users(region.nodes)
        updates = {region.results[i] for i in self.indices}
        moved: set[Node] = set()
        for n in reversed(region.nodes):
            readers = {m for v in n.results for m in read_by.get(v, ())}
            is_arithmetic = isinstance(n.op.lower, Elementwise | View)
            is_arithmetic &= self.overwritten.isdisjoint(map(base, n.operands))
            is_update = not updates.isdisjoint(n.results)
            if is_update and not (is_arithmetic and readers <= moved):
                return None
            stored = any(v in n.results for v in stays)
            if is_arithmetic and not stored and (is_update or (readers and readers <= moved)):
                moved.add(n)
        return moved


def _views(v: Value) -> Iterator[Value]:
    """v and the values that it is a view of, as long as they are views themselves. Views are rebuilt from the array,
    since only an array can be a result."""
    while v.base is not v:
        yield v
        (v, *_) = v.node.operands
