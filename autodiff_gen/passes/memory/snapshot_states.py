"""Snapshot states: a product of the backward pass reads a copy of a parameter instead of the parameter. The update of
the parameter then need not wait for the product, whose result is larger than the copy.

    entry f(x: f32[2,16], dy: f32[16,4], lr: f32[])
      %0: f32[4,2] = permute(w, dims=(1, 0))
      %1: f32[16,2] = matmul(dy, %0)
      %2: f32[2,4] = accumulate(x, dy, w, lr, beta=1.0, negate=True)
      dx <- %1
      w' <- %2
    ->
    entry f(x: f32[2,16], dy: f32[16,4], lr: f32[])
      %0: f32[4,2] = permute(w, dims=(1, 0))
      %1: f32[4,2] = copy(%0, snapshot=True)
      %2: f32[16,2] = matmul(dy, %1)
      %3: f32[2,4] = accumulate(x, dy, w, lr, beta=1.0, negate=True)
      dx <- %2
      w' <- %3

The new value of a parameter is stored in the memory of the old one, so all readers of the old value come first. The
operands of the gradient, such as a recomputed activation, are then alive together with the product's result. The copy
is made where this is the peak, and the smaller arena is worth the time.
"""

from __future__ import annotations

from ...ir.dependences import state_of, writers
from ...ir.graph import Graph
from ...ir.node import Node, Value, base
from ...ir.op_kinds import Contraction, Elementwise, KernelOp, RowContraction
from ...ir.origin import is_after_loss
from ..arena_use import liveness
from ..context import Context
from ..layout.copy_insertion import with_old_states_copied
from ..profitability import is_worth_its_time

MOST_TRIES = 3  # copies that are measured one after the other, at each peak: a limit of compile time


def snapshot_states(graph: Graph, context: Context) -> Graph:
    """See the module."""
    if graph.inner or not context.weighs_memory or not larger_results(graph):
        return graph
    while True:
        reads = _at_the_peak(graph, context)
        tries = (with_old_states_copied(graph, [read]) for read in reads[:MOST_TRIES])
        better = next((new for new in tries if is_worth_its_time(new, graph, context)), None)
        if better is None:
            return graph
        graph = better


def with_early_updates(graph: Graph, context: Context) -> Graph:
    """The graph in which every product of `larger_results` reads a copy of the state: no update waits for a product
    whose result is larger than the state."""
    return context.analysis(
        (with_early_updates, graph),
        lambda: with_old_states_copied(graph, [(n, i) for n, i, _ in larger_results(graph)]),
    )


def larger_results(graph: Graph) -> list[tuple[Node, int, Node]]:
    """Products of the backward pass with an operand that is a state smaller than the result: the product, the number
    of the operand, and the node that updates the state."""
    writer, found = writers(graph), []
    for n in graph.of(KernelOp, Contraction):
        for i, v in enumerate(n.operands) if is_after_loss(n.origin) else ():
            state = state_of(v)
            updated = writer.get(state) if state is not None else None
            if updated not in (None, n) and base(v).type.bytes < n.results[0].type.bytes:
                found.append((n, i, updated))
    return found


def _at_the_peak(graph: Graph, context: Context) -> list[tuple[Node, int]]:
    """The products of `larger_results` whose result is alive at the peak together with an operand of the update, each
    with the number of the state operand; the largest result first."""
    alive = set(liveness(graph, context).at_the_peak)
    found = [
        (n, i)
        for n, i, u in larger_results(graph)
        if n.results[0] in alive and not alive.isdisjoint(_read_by(u))
    ]
    return sorted(found, key=lambda read: -read[0].results[0].type.bytes)


def _read_by(update: Node) -> set[Value]:
    """The values that the loops of an update read, including the loops that complete a gradient by rows."""
    found, pending = set[Value](), [update]
    while pending:
        new = {base(v) for v in pending.pop().operands} - found
        found |= new
        pending += [v.node for v in new if isinstance(v.node.op.lower, Elementwise | RowContraction)]
    return found
