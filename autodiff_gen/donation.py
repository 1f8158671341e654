"""Donation: the new value of a state takes the bytes of the old one.

So every reader of the old value comes before the writer of the new one; and with a guard the loss comes before
every writer. These are edges beside those of the data; the passes and the scheduler both honour them.
"""

from __future__ import annotations

from .dtypes import planned_size
from .ir import Graph, Node, State, Value, topological
from .layout import base
from .op import Elementwise, Reduce, RowContraction, View


def writers(graph: Graph) -> dict[State, Node]:
    """The node that writes each updated state."""
    return {state: base(new).node for state, new in graph.updates.items()}


def state_of(v: Value) -> State | None:
    """The state whose old value v shows, itself or through views."""
    state: State | None = base(v).node.attrs.get("state")
    return state


def ordering_edges(graph: Graph) -> dict[Node, list[Node]]:
    """For each writer of a state, the other nodes that read the state's old value: they come first."""
    writer = writers(graph)
    edges: dict[Node, list[Node]] = {}
    for node in topological(graph.roots):
        if isinstance(node.op.lower, View):
            continue
        for v in node.operands:
            state = state_of(v)
            if state in writer and writer[state] is not node:
                readers = edges.setdefault(writer[state], [])
                if node not in readers:
                    readers.append(node)
    return edges


def guarded(graph: Graph) -> tuple[set[Node], set[Node]]:
    """(early, late): what the loss needs; and what waits until the loss has been found finite: the writers of states,
    and the arithmetic of updates that leads to them alone, up to the sums that complete a gradient.

    New states that the loss itself reads are copied into place afterwards (own_bytes). Both are empty without a guard.
    """
    if graph.guard is None or "loss" not in graph.outputs:
        return set(), set()
    early = set(topological([graph.outputs["loss"]]))
    late = {n for n in writers(graph).values() if n not in early}
    order = topological(graph.roots)
    readers: dict[Node, list[Node]] = {}
    for n in order:
        for v in n.operands:
            if not isinstance(n.op.lower, View):
                readers.setdefault(base(v).node, []).append(n)
    for n in reversed(order):
        reading = readers.get(n, [])
        if n not in early and reading and late.issuperset(reading) and all(_updates(n, r) for r in reading):
            late.add(n)
    return early, late


def _updates(node: Node, reader: Node) -> bool:
    """Whether a node is part of the arithmetic of the update that its reader belongs to."""
    size = planned_size(node.results[0].type.shape)
    if isinstance(reader.op.lower, Reduce):  # the terms of a sum that are nowhere stored
        terms = isinstance(node.op.lower, Elementwise)
        return terms and all(size > planned_size(base(v).type.shape) for v in node.operands)
    same = isinstance(node.op.lower, Elementwise | Reduce | RowContraction)
    return same and size == planned_size(reader.results[0].type.shape)
