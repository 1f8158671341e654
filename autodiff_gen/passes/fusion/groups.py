"""The partition of a graph into groups that become loop nests.

A group is convex (no path leads out of it and back in, control dependences included), its values can share loop
axes, and its size is capped. Nodes without operands (indices, counts, single constants) are computed again in every
group that needs them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain

from ...ir.dependences import control_edges, guarded, state_of
from ...ir.graph import Graph, State
from ...ir.loop_axes import Labels, label
from ...ir.node import Node, Value, base
from ...ir.op_kinds import Elementwise, Iota, Leaf, RowContraction, View
from ...ir.ordered_dag import OrderedDag
from ...ir.origin import is_after_loss
from ...ir.traits import compared_with_their_extremes, is_free, is_fusable
from ...ir.types import Shape, planned_size
from ...targets.cost_table import CostTable
from ..costs import has_wide_vectors, is_recomputed
from .cross_layer_fusion import are_of_different_layers, pass_values_in_loops
from .flat_loops import flat_shape, wants_a_flat_loop
from .phase_boundaries import PhaseBudget

LARGEST_GROUP = (
    48  # nodes: limits compile time and the length of a step that a reader can follow, for any target
)


def _is_cheap(node: Node) -> bool:
    return isinstance(node.op.lower, Elementwise) and node.op.lower.cheap


class _Barriers:
    """Pairs of groups with a node between them that does not fuse: they stay apart. There are many such pairs, since
    the gradient of a layer reads values of the forward pass. They are far apart: a bit per node answers without a
    search.
    """

    def __init__(self, dag: OrderedDag[int], fusable: Sequence[bool]) -> None:
        level: dict[int, int] = {}  # the most barriers on a path that leads here
        for g in dag.rank:
            level[g] = max((level[a] + (not fusable[a]) for a in dag.above[g]), default=0)
        far = [
            g
            for g in dag.rank
            if fusable[g] and any(fusable[r] and level[r] > level[g] for r in dag.below[g])
        ]
        self.own = {g: 1 << k for k, g in enumerate(far)}
        reached: dict[int, int] = {}
        self.past_barrier: dict[int, int] = {}
        for g in dag.rank:
            every = past = 0
            for a in dag.above[g]:
                whole = reached[a] | self.own.get(a, 0)
                every |= whole
                past |= self.past_barrier[a] if fusable[a] else whole
            reached[g], self.past_barrier[g] = every, past

    def between(self, a: int, b: int) -> bool:
        """Whether a path from one of two groups to the other has a barrier on it."""
        own, past_barrier = self.own, self.past_barrier
        return bool(own.get(a, 0) & past_barrier[b] or own.get(b, 0) & past_barrier[a])

    def merge(self, a: int, b: int) -> None:
        self.own[a] = self.own.get(a, 0) | self.own.get(b, 0)
        self.past_barrier[a] |= self.past_barrier[b]


class Groups:
    """The growing partition of the graph's nodes; a node that does not fuse is a group by itself."""

    def __init__(self, graph: Graph, cost: CostTable) -> None:
        self.cost = cost
        edges = control_edges(graph)
        self.early, self.late = guarded(graph)
        self.phases, self.users = PhaseBudget(graph, cost), graph.users
        self.order = [n for n in graph.nodes if not isinstance(n.op.lower, View) and not is_free(n)]
        self.position = {n: i for i, n in enumerate(self.order)}
        self.free = {n: _free_operands(n) for n in self.order}
        self.apart = {n for n in self.order if wants_a_flat_loop(n, cost)}
        self.groups = {i: self.phases.group(n, _own_shape(n)) for i, n in enumerate(self.order)}
        self.group = dict(self.position)
        self._before = {n: self._found_before(n, edges) for n in self.order}
        above = {i: [self.group[b] for b in self._before[n]] for i, n in enumerate(self.order)}
        self.dag = OrderedDag(self._dependence_order(above), above)
        self.labels: dict[int, Labels] = {}  # group -> the loops of its nodes when they were last labelled
        self.labels_of_both: dict[
            tuple[int, int], Labels
        ] = {}  # the loops of the last two groups that may merge
        self.fusable = {n for n in self.order if is_fusable(n)}
        self.barriers = _Barriers(self.dag, [n in self.fusable for n in self.order])

    def _found_before(self, node: Node, edges: Mapping[Node, Sequence[Node]]) -> list[Node]:
        sources = [v.base.node for v in node.operands]
        return [n for n in (*sources, *edges.get(node, ())) if n in self.group]

    def _dependence_order(self, above: Mapping[int, Sequence[int]]) -> list[int]:
        """The nodes in an order that respects control dependences; the graph's own order may violate them. Each node is
        as late as its readers allow, so that few nodes are between two that are merged."""
        height = dict.fromkeys(above, 0)  # the longest path to a node that nothing reads
        readers = Counter(chain.from_iterable(above.values()))
        done = [g for g in above if not readers[g]]
        for g in done:
            for source in above[g]:
                if height[source] <= height[g]:
                    height[source] = height[g] + 1
                readers[source] -= 1
                if not readers[source]:
                    done.append(source)
        return sorted(above, key=lambda g: (-height[g], g))

    def before(self, node: Node) -> list[Node]:
        """The nodes that must come before `node`: its operands, the readers of a state that it writes, and the
        conditions of the guard if it waits for the guard."""
        return self._before[node]

    def in_dependence_order(self) -> list[Node]:
        """The nodes in order, except that a node that writes a state comes after all readers of the old value. As long
        as these readers are in separate groups, they are between the writer and its operands."""
        done: dict[Node, None] = {}
        for root in self.order:
            pending = [root]
            while pending:
                missing = [n for n in self._before[pending[-1]] if n not in done]
                if not missing:
                    done[pending.pop()] = None
                pending += missing
        return list(done)

    def may_merge(self, a: int, b: int) -> bool:
        """Whether two groups can share loops and gain by that; the second group reads the first."""
        first, second = self.groups[a], self.groups[b]
        if len(first.nodes) + len(second.nodes) > LARGEST_GROUP or self.barriers.between(a, b):
            return False
        nodes = [*first.nodes, *second.nodes]
        if self.late and not self.late.isdisjoint(nodes) and not self.early.isdisjoint(nodes):
            return False  # the guard is between them
        if (first.recomputed and second.early) or (first.early and second.recomputed):
            return False
        if first.strips != second.strips:
            return False  # one strip after the other
        if self.phases.apart_but_for_numbers(first, second):
            return False  # before a search for paths from a number that every layer reads
        if self.dag.has_path_through_others(a, b):
            return False
        surely = self._shape_of_both(a, b) is not None
        if not surely or self._wants_a_flat_loop(nodes):
            nodes.sort(key=self.position.__getitem__)
            labels = self._labels(nodes, self.labels.get(a))
            if labels is None:
                return False
            self.labels_of_both = {(a, b): labels}
            several = not surely and are_of_different_layers(nodes)
            if several and not pass_values_in_loops(first.nodes, nodes, labels, self.users):
                return False
        return not self.phases.apart(first, second)

    def _wants_a_flat_loop(self, nodes: Sequence[Node]) -> bool:
        return bool(self.apart) and not self.apart.isdisjoint(nodes)

    def _shape_of_both(self, a: int, b: int) -> Shape | None:
        """The one shape of all arrays that two groups compute, if the second group reads arrays of the first only
        element by element, without views: the groups then surely share loops. None otherwise."""
        first, second = self.groups[a].shape, self.groups[b].shape
        if first is None or second is None or (first and second and first != second):
            return None
        for n in self.groups[b].nodes:
            whole = isinstance(n.op.lower, RowContraction)
            for v in n.operands:
                is_view = v is not v.base and v.base.type.shape != ()
                if (whole or is_view) and self.group.get(v.base.node) == a:
                    return None
        return first or second

    def _labels(self, nodes: list[Node], known: Labels | None = None) -> Labels | None:
        """The loops that the nodes share. None where they share none, where one wants a flat loop and they cannot have
        one, or where a product by rows reads a whole value that the loops compute element by element. known: the loops
        of some of the nodes, which read nothing of the others."""
        every = with_free(nodes, self.free.__getitem__)
        inside = {r for n in every for r in n.results}
        if self._wants_a_flat_loop(nodes) and flat_shape(nodes, inside) is None:
            return None
        for n in nodes:
            if isinstance(n.op.lower, RowContraction) and any(v.base in inside for v in n.operands):
                return None
        return label(every, inside, known)

    def merge(self, a: int, b: int) -> None:
        shape = self._shape_of_both(a, b)
        added = self.groups.pop(b)
        for n in added.nodes:
            self.group[n] = a
        self.groups[a].add(added, shape)
        self.labels.pop(b, None)
        if (a, b) in self.labels_of_both:
            self.labels[a] = self.labels_of_both[a, b]
        self.dag.merge(a, b)
        self.barriers.merge(a, b)

    def recompute_cheap(self, graph: Graph) -> None:
        """Compute cheap values again where they are read, instead of storing them, if their operands are in memory
        anyway.
        """
        roots, updated = graph.outside_arena, set(graph.updates)
        stored = roots | compared_with_their_extremes(graph.nodes)
        readers: dict[Value, list[Node]] = {}
        for n in self.order:
            for v in n.operands:
                readers.setdefault(v.base, []).append(n)
        holders = {n: {g} for n, g in self.group.items()}  # the groups that compute a node

        late = {g: all(is_after_loss(n.origin) for n in group.nodes) for g, group in self.groups.items()}

        def elsewhere(v: Value) -> Iterator[int]:
            """The groups that read v and do not compute it."""
            if v.node in holders:
                yield from (g for n in readers.get(v, ()) for g in holders[n] - holders[v.node])

        def is_stored(v: Value) -> bool:
            return v in roots or next(elsewhere(v), None) is not None

        def stays(v: Value) -> bool:
            """Whether a value is in memory in the backward pass too."""
            is_there = v in roots or isinstance(v.node.op.lower, Leaf) or is_free(v.node)
            return is_there or any(late[g] for g in elsewhere(v))

        for node in reversed(self.order):
            if not _is_cheap(node) or node.results[0] in stored:
                continue
            reading = {g for n in readers.get(node.results[0], ()) for g in holders[n]} - {self.group[node]}
            if not reading or not all(self.groups[g].nodes[0] in self.fusable for g in reading):
                continue
            if any(self.groups[g].strips != {node.origin.strip} for g in reading):
                continue
            waits = not late[self.group[node]] and all(late[g] for g in reading)  # for the backward pass
            rows = waits and has_wide_vectors(self.cost)
            again = self._recomputed(node, len(reading), is_stored, updated, rows)
            if again is None:
                continue
            if waits:
                read = {base(v) for n in again for v in n.operands} - {r for n in again for r in n.results}
                if node.results[0].type.bytes < sum(v.type.bytes for v in read if not stays(v)):
                    continue  # it takes less memory than its sources
            merged = {
                g: [*self.groups[g].nodes, *(n for n in again if g not in holders[n])]
                for g in sorted(reading)
            }
            each = (sorted(members, key=self.position.__getitem__) for members in merged.values())
            if all(self._labels(members) is not None for members in each):
                for g, members in merged.items():
                    self.groups[g].nodes = members
                    self.groups[g].strips |= {n.origin.strip for n in again}
                for n in again:
                    holders[n] |= reading

    def _recomputed(
        self, node: Node, readers: int, is_stored: Callable[[Value], bool], updated: set[State], rows: bool
    ) -> list[Node] | None:
        """The cheap nodes that compute `node` from stored values. None where a load is cheaper for so many readers, or
        where the nodes read a state that an update writes. rows: whether smaller values, such as a scale of each
        channel, are stored for that."""
        again: list[Node] = []
        loaded: set[Value] = set()
        size = planned_size(node.results[0].type.shape)
        pending = [node]
        while pending:
            n = pending.pop()
            if not _is_cheap(n) or not is_recomputed(self.cost, len(again) + 1, len(loaded), readers):
                return None
            if any(state_of(v) in updated for v in n.operands):
                return None  # an updated state must not be read any later than now
            again.append(n)
            for v in map(base, n.operands):
                is_row = rows and not is_free(v.node) and planned_size(v.type.shape) < size
                if isinstance(v.node.op.lower, Leaf) or is_stored(v) or is_row:
                    loaded.add(v)
                elif not is_free(v.node) and v.node not in again:
                    pending.append(v.node)
        return again if is_recomputed(self.cost, len(again), len(loaded), readers) else None

    def needed(self, graph: Graph) -> set[Value]:
        """Values that a group reads without computing them, or that the caller needs: they are stored."""
        needed = set(graph.outside_arena)
        for g in self.groups.values():
            inside = set(g.nodes)
            needed.update(v.base for n in g.nodes for v in n.operands if v.base.node not in inside)
        return needed


def _own_shape(node: Node) -> Shape | None:
    """The shape of an array whose elements are computed from elements at the same index: it surely shares loops with
    its operands. None for others."""
    if not isinstance(node.op.lower, (Elementwise, RowContraction)):
        return None
    for v in node.operands:
        source = v.base
        is_view = source is not v and source.type.shape != ()
        if is_free(source.node) and (is_view or isinstance(source.node.op.lower, Iota)):
            return None
    return node.results[0].type.shape


def _free_operands(node: Node) -> list[Node]:
    """The free nodes that a node reads."""
    sources = [v.base.node for v in node.operands]
    return [n for n in sources if not n.operands and is_free(n)]


def with_free(
    nodes: Sequence[Node], free_operands: Callable[[Node], Sequence[Node]] = _free_operands
) -> list[Node]:
    """`nodes`, and ahead of them the free nodes that they read."""
    return [*dict.fromkeys(chain.from_iterable(map(free_operands, nodes))), *nodes]


def grouped(graph: Graph, cost: CostTable) -> Groups:
    """The groups of a graph's nodes. Each fusable node joins the groups of its producers, the latest first, where it
    may. Cheap values are then recomputed in the groups that read them."""
    groups = Groups(graph, cost)
    for node in groups.in_dependence_order():
        if node not in groups.fusable:
            continue
        # A node that only reads a state before this node writes it stays apart: in one loop nest it might read too
        # late.
        sources = {v.base.node for v in node.operands} & groups.fusable
        for producer in sorted(sources, key=groups.position.__getitem__, reverse=True):
            mine, other = groups.group[node], groups.group[producer]
            if mine != other and groups.may_merge(other, mine):
                groups.merge(other, mine)
    groups.recompute_cheap(graph)
    return groups
