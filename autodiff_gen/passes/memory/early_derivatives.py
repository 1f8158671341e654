"""Early derivatives: move a value from the backward pass to the forward pass, most often the derivative of an
activation. The value is computed only from values of the forward pass, by functions such as exp. It is stored instead
of these values, and takes less memory than they do.

    entry f(x: f32[1,4], w: f32[4,16], v: f32[16,2], u: f32[2,16])
      %0: f32[1,16] = matmul(x, w)
      %1: f32[1,16] = sigmoid(%0)
      %2: f32[1,16] = mul(%0, %1)
      %3: f32[1,2] = matmul(%2, v)
      %4: f32[1,16] = matmul(%3, u)
      %5: f32[1,16] = exp(%0)
      %6: f32[1,16] = mul(%1, %5)
      %7: f32[1,16] = mul(%4, %6)
      y <- %3
      dx <- %7
    ->
    entry f(x: f32[1,4], w: f32[4,16], v: f32[16,2], u: f32[2,16])
      %0: f32[1,16] = matmul(x, w)
      %1: f32[1,16] = sigmoid(%0)
      %2: f32[1,16] = mul(%0, %1)
      %3: f32[1,2] = matmul(%2, v)
      %4: f32[1,16] = exp(%0)
      %5: f32[1,16] = mul(%1, %4)
      y <- %3
      dx <- %5

The second graph shows only the forward pass, with the value that it stores for dx: neither %0 nor %1. Where a smaller
arena is worth the time, `rematerialize` recomputes that value too.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import replace

from ...ir.graph import Graph
from ...ir.node import Node, Value, base
from ...ir.op_kinds import Elementwise, Leaf
from ...ir.origin import BACKWARD, FORWARD, Label, is_after_loss
from ...ir.rewrite import rewritten
from ...ir.traits import is_free
from ..context import Context


def early_derivatives(graph: Graph, context: Context) -> Graph:
    """See the module."""
    if graph.inner:
        return graph
    found = [*_derivatives(graph)]
    moved, last = {n for _, nodes in found for n in nodes}, {v.node for v, _ in found}

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...]:
        old = node.origin
        labels = {0: Label("derivative", old.scope)} if node in last else old.labels
        types = tuple([r.type for r in node.results])
        origin = replace(old, phase=FORWARD, labels=labels, recomputed=False, strip=None)
        return Node(node.op, operands, node.attrs, types, origin=origin).results

    return rewritten(graph, rewrite, moved)


def _derivatives(graph: Graph) -> Iterable[tuple[Value, set[Node]]]:
    """Values of the backward pass that are computed only from values of the forward pass, by functions such as exp.
    Each has the nodes that compute it, and takes less memory than the values that it is stored instead of."""
    roots = graph.outside_arena
    of_forward: dict[Value, set[Node]] = {}  # value -> the nodes of the backward pass for it
    for node in graph.nodes:
        if node.origin.phase == BACKWARD and isinstance(node.op.lower, Elementwise):
            sources = [v.base for v in node.operands]
            if all(v in of_forward or v.node.origin.phase == FORWARD for v in sources):
                inside = {n for v in sources for n in of_forward.get(v, ())}
                of_forward[node.results[0]] = {*inside, node}
    for v, nodes in of_forward.items():
        if all(r.results[0] in of_forward for r in graph.readers(v)) or v in roots:
            continue  # a part of another value that is found
        inner = {r for n in nodes for r in n.results} - {v}
        if any({*graph.readers(u)} - nodes for u in inner) or not any(map(_calls, nodes)):
            continue
        read = {base(u) for n in nodes for u in n.operands} - inner
        freed = {u for u in read if not _is_there(u, graph, roots, nodes)}
        if sum(u.type.bytes for u in freed) > v.type.bytes:
            yield v, nodes


def _calls(node: Node) -> bool:
    return isinstance(node.op.lower, Elementwise) and node.op.lower.calls


def _is_there(v: Value, graph: Graph, roots: Set[Value], nodes: set[Node]) -> bool:
    """Whether a value is in memory in the backward pass in any case, or because nodes other than these read it."""
    if v in roots or isinstance(v.node.op.lower, Leaf) or is_free(v.node):
        return True
    return any(is_after_loss(n.origin) and n not in nodes for n in graph.readers(v))
