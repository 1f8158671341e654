"""Dependences in addition to data flow: the new value of a state reuses the memory of the old one.

So every reader of the old value comes before the writer of the new one; and with a guard the loss, and the bound
of the updates where there is one, come before every writer. Passes and the scheduler keep these edges: write-after-read
edges and control dependences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from functools import lru_cache

from .added_terms import added_to
from .graph import Graph, State
from .node import Node, Value, base, topological
from .op_kinds import Assemble, Contraction, Elementwise, KernelOp, Leaf, Reduce, RowContraction, View
from .ordered_dag import OrderedDag
from .traits import has_epilogue
from .types import planned_size


def writers(graph: Graph) -> dict[State, Node]:
    """The node that writes each updated state."""
    return {state: new.base.node for state, new in graph.updates.items()}


def state_of(v: Value) -> State | None:
    """The state whose old value v shows, itself or through views."""
    state: State | None = v.base.node.attrs.get("state")
    return state


def ordering_edges(graph: Graph) -> dict[Node, list[Node]]:
    """For each writer of a state, the other nodes that read the state's old value: they come first."""
    writer = writers(graph)
    edges: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        if isinstance(node.op.lower, View):
            continue
        for v in node.operands:
            state = state_of(v)
            if state in writer and writer[state] is not node:
                readers = edges.setdefault(writer[state], [])
                if node not in readers:
                    readers.append(node)
    return edges


def guard_conditions(graph: Graph) -> list[Node]:
    """The nodes whose results are checked to be finite before any state changes, in this order: the loss, and the bound
    of the updates."""
    if graph.guard is None:
        return []
    values = [graph.outputs.get("loss"), graph.bound]
    return list(dict.fromkeys(v.base.node for v in values if v is not None))


def condition_edges(graph: Graph) -> dict[Node, list[Node]]:
    """For each node that waits for the guard, all conditions; for each condition, the conditions that come before
    it."""
    first = guard_conditions(graph)
    edges = {condition: first[:k] for k, condition in enumerate(first)}
    edges.update((n, first) for n in guarded(graph)[1])
    return edges


@lru_cache(maxsize=8)
def control_edges(graph: Graph) -> Mapping[Node, Sequence[Node]]:
    """For each node the nodes that come first though it reads none of their results. Before `copy_insertion` copies the
    old states that are read late, some of these edges contradict the graph; they are left out."""
    edges = ordering_edges(graph)
    for node, conditions in condition_edges(graph).items():
        edges.setdefault(node, []).extend(conditions)
    return edges if _is_acyclic(graph, edges) else _without_cycles(graph, edges)


def _is_acyclic(graph: Graph, edges: Mapping[Node, Sequence[Node]]) -> bool:
    """Whether some order keeps all edges."""
    before = {n: [*(v.node for v in n.operands), *edges.get(n, ())] for n in graph.nodes}
    missing = {n: len(nodes) for n, nodes in before.items()}
    after: dict[Node, list[Node]] = {n: [] for n in before}
    for n, nodes in before.items():
        for earlier in nodes:
            after[earlier].append(n)
    ready = [n for n, count in missing.items() if not count]
    for n in ready:
        for later in after[n]:
            missing[later] -= 1
            if not missing[later]:
                ready.append(later)
    return len(ready) == len(before)


def _without_cycles(graph: Graph, edges: Mapping[Node, Sequence[Node]]) -> dict[Node, list[Node]]:
    """The edges, except edges that would close a cycle with the edges before them."""
    order = OrderedDag(graph.nodes, {n: [v.node for v in n.operands] for n in graph.nodes})
    return {n: [b for b in before if order.add_edge(b, n)] for n, before in edges.items()}


@lru_cache(maxsize=8)  # several stages in succession request the same entries'
def guarded(graph: Graph) -> tuple[Set[Node], Set[Node]]:
    """(unguarded, waiting): the nodes that the conditions need, and the nodes that wait until the conditions have been
    found finite. Waiting are the writers of states, and the arithmetic of updates that leads only to them, up to the
    sums that complete a gradient.

    While there is no bound of the updates, unguarded are the nodes that the loss needs. New states that unguarded nodes
    read are copied into place afterwards (copy_insertion). Both are empty without a guard.
    """
    if graph.guard is None or (graph.guard == "loss" and "loss" not in graph.outputs):
        return set(), set()
    unguarded = set(topological([r for condition in guard_conditions(graph) for r in condition.results]))
    if graph.guard == "loss":
        return unguarded, _waiting(graph, unguarded, None)
    stored = {v.base for n in _waiting(graph, unguarded, set()) if is_product(n) for v in n.operands}
    return unguarded, _waiting(graph, unguarded, stored)


def is_product(node: Node) -> bool:
    """Whether the results are sums of products of the operands, which take less memory together."""
    lower = node.op.lower
    if isinstance(lower, Reduce):
        return lower.sums and _has_outer_terms(base(node.operands[0]).node)
    if isinstance(lower, Contraction):
        return not has_epilogue(node)
    return isinstance(lower, RowContraction) or (isinstance(lower, KernelOp) and bool(lower.summed))


def _waiting(graph: Graph, unguarded: set[Node], stored: set[Value] | None) -> set[Node]:
    """The nodes that wait. stored: values that stay in memory until the updates; where they are given, products wait
    too, and sums that read only such values.
    """
    waiting = {n for n in writers(graph).values() if n not in unguarded}
    order = graph.nodes
    readers: dict[Value, list[Node]] = {}
    for n in order:
        for v in n.operands:
            if not isinstance(n.op.lower, View):
                readers.setdefault(v.base, []).append(n)

    def waits(n: Node) -> bool:
        if n in unguarded or isinstance(n.op.lower, (Leaf, View)):
            return False
        if (old := added_to(n)) is not None and state_of(old) is None:
            return False  # the sum of several products is stored
        reading = [r for v in n.results for r in readers.get(v, ())]
        if not reading or not waiting.issuperset(reading):
            return False
        if stored is None:
            return all(_updates(n, r) for r in reading)
        if is_product(n):
            return all(_updates(n, r) or _is_arithmetic(r) for r in reading)
        if isinstance(n.op.lower, Reduce):
            return all(v.base in stored or isinstance(v.base.node.op.lower, Leaf) for v in n.operands)
        if isinstance(n.op.lower, Assemble):
            return all(_size(n) == _size(r) for r in reading)
        return all(_updates(n, r) for r in reading)

    for n in reversed(order):
        if waits(n):
            waiting.add(n)
    return waiting


def _is_arithmetic(node: Node) -> bool:
    return isinstance(node.op.lower, (Elementwise, Reduce, RowContraction, Assemble))


def _updates(node: Node, reader: Node) -> bool:
    """Whether a node is part of the arithmetic of the update that its reader belongs to."""
    if isinstance(reader.op.lower, Reduce):  # the terms of a sum, which are not stored
        return _has_outer_terms(node)
    same = isinstance(node.op.lower, (Elementwise, Reduce, RowContraction))
    return same and _size(node) == _size(reader)


def _has_outer_terms(node: Node) -> bool:
    """Whether the result has more elements than any operand."""
    terms = isinstance(node.op.lower, Elementwise)
    return terms and all(_size(node) > planned_size(v.base.type.shape) for v in node.operands)


def _size(node: Node) -> int:
    return planned_size(node.results[0].type.shape)
