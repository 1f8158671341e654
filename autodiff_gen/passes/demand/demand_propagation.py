"""Demand propagation: compute only the range of a value that its readers need along an axis, from the ranges of the
operands that this range needs. Kernels then have less work. A kernel that pads an image need not read a border that the
image has: it pads by as much more.

    entry f(x: f32[1,1,4,2], w: f32[2,1,3,2], b: f32[2])
      %0: f32[1,1,6,2] = conv2d(x, w, stride=(1, 1), padding=(0, 0, 2, 2), dilation=(1, 1), groups=1)
      %1: f32[1,1,6,2] = add(%0, b)
      %2: f32[1,1,4,2] = slice(%1, shape=(1, 1, 4, 2), starts=(0, 0, 0, 0), steps=(1, 1, 1, 1))
      y <- %2
    ->
    entry f(x: f32[1,1,4,2], w: f32[2,1,3,2], b: f32[2])
      %0: f32[1,1,4,2] = conv2d(x, w, stride=(1, 1), padding=(0, 0, 2, 0), dilation=(1, 1), groups=1)
      %1: f32[1,1,4,2] = add(%0, b)
      y <- %1

A causal convolution is written as a convolution with padding on both sides whose last results are dropped. With this
pass, neither the convolution nor its gradient computes a result in vain, and the ops after it can join its kernel. If
the head of a network reads only the last element of a sequence, or the first token, each layer computes only the range
that its readers need.

If only a part of a value is read, its gradient is still as large as the value, with zeros around the gradient of the
part. A trained parameter is read in part where that takes less memory than the whole result and its gradient."""

from __future__ import annotations

from collections.abc import Set

from ...ir.graph import Graph
from ...ir.node import CONST, STATE, Value
from ...ir.op_kinds import Assemble, Pick, View, ViewKind
from ...ir.traits import view_kind
from ..context import Context
from .computed_parts import computed_parts
from .demand import Demand


def demand_propagation(graph: Graph, context: Context) -> Graph:
    """See the module."""
    return with_parts(graph, False, _weights(graph, context))


def with_parts(graph: Graph, separate: bool, weights: Set[Value] = frozenset()) -> Graph:
    """The graph in which only needed parts are computed, along one axis after the other. separate, weights: as for
    Demand."""
    while True:
        cut = [n for n in graph.of(View, Assemble) if view_kind(n) in (None, ViewKind.WINDOW)]
        rank = max((n.results[0].ndim for n in cut), default=1 if graph.of(Pick) and separate else 0)
        demands = (Demand(graph, axis, separate, weights) for axis in range(rank))
        found = next((demand for demand in demands if demand.parts), None)
        if found is None:
            return graph
        graph = computed_parts(graph, found)


def _weights(graph: Graph, context: Context) -> Set[Value]:
    """Trained parameters, and values computed only from them, where the graph is differentiated."""
    if context.training is None or "loss" not in graph.outputs:
        return frozenset()
    trained, found = {state.name for state, _ in context.training.trained}, set[Value]()
    for node in graph.nodes:
        read = [v for v in node.operands if v.node.op is not CONST]
        is_trained = node.op is STATE and node.attrs["state"].name in trained
        if is_trained or (read and found.issuperset(read)):
            found.update(node.results)
    return found
