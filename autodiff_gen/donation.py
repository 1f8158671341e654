"""Donation: the new value of a state takes the bytes of the old one.

So every reader of the old value comes before the writer of the new one. These are edges beside those of the
data; the passes and the scheduler both honour them.
"""

from __future__ import annotations

from .ir import Graph, Node, State, Value, topological
from .layout import base
from .op import View


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
