"""The partition of a graph into groups that become loop nests.

A group is convex (no way out of it leads back in, donation's ordering included), its values can share loop
axes, and its size is capped. What depends on nothing (indices, counts, single constants) is computed again in
every group that wants it.
"""

from __future__ import annotations

from collections.abc import Callable

from ..ir.dependences import gate_edges, guarded, ordering_edges, state_of
from ..ir.graph import Graph, State
from ..ir.loop_axes import label
from ..ir.node import CONST, Node, Value, topological
from ..ir.op_kinds import Assemble, Elementwise, Extent, Iota, Leaf, Pick, Reduce, RowContraction, View
from ..ir.types import Dim, Shape, planned, planned_size
from ..ir.views import base, layout, stored

LARGEST_GROUP = 48
MOST_RECOMPUTED = 4  # cheap operations that are done again rather than their result stored


def is_free(node: Node) -> bool:
    """Whether every group may compute the node for itself."""
    return isinstance(node.op.lower, Iota | Extent) or (node.op is CONST and node.attrs["value"].size == 1)


def _is_cheap(node: Node) -> bool:
    return isinstance(node.op.lower, Elementwise) and node.op.lower.cheap


def is_fusable(node: Node) -> bool:
    return isinstance(node.op.lower, Elementwise | Reduce | Pick | Assemble | RowContraction)


class Groups:
    """The growing partition of the graph's nodes; nodes that do not fuse are groups of their own."""

    def __init__(self, graph: Graph, vectors: int = 0) -> None:
        self.edges = ordering_edges(graph)
        self.early, self.late = guarded(graph)
        for n, gates in gate_edges(graph).items():
            self.edges.setdefault(n, []).extend(gates)
        self.order = [
            n for n in topological(graph.roots) if not isinstance(n.op.lower, View) and not is_free(n)
        ]
        self.position = {n: i for i, n in enumerate(self.order)}
        self.apart = {n for n in self.order if vectors and _wants_a_flat_loop(n, vectors)}
        self.members: dict[int, list[Node]] = {}
        self.group: dict[Node, int] = {}
        for i, node in enumerate(self.order):
            self.group[node] = i
            self.members[i] = [node]
        self._before = {n: self._found_before(n) for n in self.order}
        # The same between groups: which must come before, which after.
        self.above = {i: {self.group[b] for b in self._before[n]} for i, n in enumerate(self.order)}
        self.below: dict[int, set[int]] = {i: set() for i in self.members}
        for g, above in self.above.items():
            for h in above:
                self.below[h].add(g)

    def _found_before(self, node: Node) -> list[Node]:
        sources = [base(v).node for v in node.operands]
        return [n for n in (*sources, *self.edges.get(node, ())) if n in self.group]

    def before(self, node: Node) -> list[Node]:
        """The nodes that must come before `node`: its operands, and the readers of a state that it writes."""
        return self._before[node]

    def may_merge(self, a: int, b: int) -> bool:
        nodes = [*self.members[a], *self.members[b]]
        if not self.late.isdisjoint(nodes) and not self.early.isdisjoint(nodes):
            return False  # the guard stands between them
        return len(nodes) <= LARGEST_GROUP and not self._around(a, b) and self._share_loops(nodes)

    def _around(self, a: int, b: int) -> bool:
        """Whether a way leads from one of two groups to one of them through others."""
        both = {a, b}
        pending = list((self.above[a] | self.above[b]) - both)
        seen = set(pending)
        while pending:
            above = self.above[pending.pop()]
            if not both.isdisjoint(above):
                return True
            pending.extend(above - seen)
            seen |= above
        return False

    def _share_loops(self, nodes: list[Node]) -> bool:
        """Whether the nodes can share loops, and no product by rows wants the whole of what they only have in
        part.
        """
        nodes = sorted(nodes, key=self.position.__getitem__)
        inside = {r for n in with_free(nodes) for r in n.results}
        if not self.apart.isdisjoint(nodes) and flat_shape(nodes, inside) is None:
            return False
        for n in nodes:
            if isinstance(n.op.lower, RowContraction) and any(base(v) in inside for v in n.operands):
                return False
        return label(with_free(nodes), inside) is not None

    def merge(self, a: int, b: int) -> None:
        self.members[a] += (moved := self.members.pop(b))
        for n in moved:
            self.group[n] = a
        for there, back in ((self.above, self.below), (self.below, self.above)):
            there[a] = (there[a] | there.pop(b)) - {a, b}
            for g in there[a]:
                back[g].discard(b)
                back[g].add(a)

    def sink(self, graph: Graph) -> None:
        """Compute cheap values again where they are read, when their operands are in memory anyway, rather
        than store them.
        """
        roots = {base(v) for v in graph.roots}
        readers: dict[Value, list[Node]] = {}
        for n in self.order:
            for v in n.operands:
                readers.setdefault(base(v), []).append(n)
        holders = {n: {g} for n, g in self.group.items()}  # the groups that compute a node

        def is_stored(v: Value) -> bool:
            return v in roots or any(
                holders[n] - holders[v.node] for n in readers.get(v, ()) if v.node in holders
            )

        for node in reversed(self.order):
            if not _is_cheap(node) or node.results[0] in roots:
                continue
            reading = {g for n in readers.get(node.results[0], ()) for g in holders[n]} - {self.group[node]}
            if not reading or not all(is_fusable(self.members[g][0]) for g in reading):
                continue
            again = self._recomputed(node, is_stored, set(graph.updates))
            if again is None:
                continue
            merged = {
                g: [*self.members[g], *(n for n in again if g not in holders[n])] for g in sorted(reading)
            }
            if all(self._share_loops(members) for members in merged.values()):
                self.members.update(merged)
                for n in again:
                    holders[n] |= reading

    def _recomputed(
        self, node: Node, is_stored: Callable[[Value], bool], updated: set[State]
    ) -> list[Node] | None:
        """The cheap nodes that compute `node` from stored values, or None when it takes more than a few."""
        again: list[Node] = []
        pending = [node]
        while pending:
            n = pending.pop()
            if not _is_cheap(n) or len(again) == MOST_RECOMPUTED:
                return None
            if any(state_of(v) in updated for v in n.operands):
                return None  # an updated state must not be read any later than now
            again.append(n)
            for v in map(base, n.operands):
                at_hand = is_free(v.node) or isinstance(v.node.op.lower, Leaf) or is_stored(v)
                if not at_hand and v.node not in again:
                    pending.append(v.node)
        return again

    def needed(self, graph: Graph) -> set[Value]:
        """Values that a group reads without computing them, or that the caller wants: they are stored."""
        needed = {base(v) for v in graph.roots}
        for members in self.members.values():
            inside = set(members)
            needed.update(s for n in members for v in n.operands if (s := base(v)).node not in inside)
        return needed


def with_free(nodes: list[Node]) -> list[Node]:
    """`nodes`, and ahead of them the free nodes that they read."""
    free = {base(v).node: None for n in nodes for v in n.operands if is_free(base(v).node)}
    return [*free, *nodes]


def _wants_a_flat_loop(node: Node, vectors: int) -> bool:
    """Whether a node calls a function at as many places as `vectors`, and its innermost axis has fewer."""
    lower, shape = node.op.lower, node.results[0].type.shape
    if not isinstance(lower, Elementwise) or not lower.calls:
        return False
    moving = [d for d in planned(shape) if d != 1]
    return len(moving) > 1 and moving[-1] < vectors <= planned_size(shape)


def flat_shape(members: list[Node], inside: set[Value]) -> Shape | None:
    """The one shape that all arrays of a purely elementwise group have, when they lie dense: one loop can run
    over all of it.
    """
    shapes = set()
    for n in members:
        if not isinstance(n.op.lower, Elementwise):
            return None
        if not stored(n.results[0]).dense:
            return None
        shapes.add(n.results[0].type.shape)
        for v in n.operands:
            if v.type.shape == ():
                continue
            at = layout(v)
            if base(v) in inside:
                if v is not base(v) or "strides" in v.node.attrs:
                    return None
            elif at is None or not at.dense:
                return None
            shapes.add(v.type.shape)
    (shape, *others) = shapes
    moving = [d for d in shape if d != 1]
    gaps = any(isinstance(d, Dim) for d in moving[1:])  # rows lie as planned for the largest batch
    return None if others or gaps or len(moving) < 2 else shape


def grouped(graph: Graph, vectors: int = 0) -> Groups:
    """Each fusable node joins the groups of its producers, the latest first, where it may. `vectors`: as in
    fuse_elementwise."""
    groups = Groups(graph, vectors)
    for node in groups.order:
        if not is_fusable(node):
            continue
        # A node that merely reads a state before this one writes it stays apart: in one loop nest it might
        # read too late.
        sources = {base(v).node for v in node.operands} & groups.group.keys()
        for producer in sorted(filter(is_fusable, sources), key=groups.position.__getitem__, reverse=True):
            mine, other = groups.group[node], groups.group[producer]
            if mine != other and groups.may_merge(other, mine):
                groups.merge(other, mine)
    groups.sink(graph)
    return groups
