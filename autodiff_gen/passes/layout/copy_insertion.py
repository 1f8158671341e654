"""Copy insertion: copy values where a view or an alias cannot serve.

    entry f(x: f32[4])            entry f(x: f32[4])
      %0: f32[4] = add(w, x)        %0: f32[4] = copy(w)
      y <- w                  ->    %1: f32[4] = add(w, x)
      w' <- %0                      y <- %0
                                    w' <- %1

These values are copied:
- A reshape that does not line up with its operand's strides, and an operand that its kernel cannot read.
- An operand with gaps between the elements of its rows, where a copy costs less than gathering it in the kernel.
- An output or new state that is a leaf, a view of some elements or in another order, or the value of another output or
  state.
- A new state that a loop or a condition returns, or that is computed before the guard.
- An old state that is read after its new value is written, or at other indices. Such a copy has the attribute
  `snapshot`.

Where memory is weighed against time, the backward pass makes another copy of a value that is in memory then anyway, so
that no copy is kept from one pass to the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.added_terms import added_operands
from ...ir.build import apply
from ...ir.dependences import guarded, ordering_edges, state_of
from ...ir.graph import Graph
from ...ir.names import label_of, with_label_of
from ...ir.node import Node, Value, base
from ...ir.op_kinds import (
    Cond,
    Contraction,
    Extent,
    Iota,
    KernelOp,
    Leaf,
    RowContraction,
    Scan,
    View,
)
from ...ir.ordered_dag import OrderedDag
from ...ir.origin import BACKWARD, is_after_loss
from ...ir.rewrite import rewritten
from ...ir.views import layout
from ..context import Context
from .copies import better_copied, copied, copied_again, copied_for, snapshot, unreadable


def _with_copies(graph: Graph, context: Context) -> Graph:
    """The graph with copies of views without a layout and of operands that kernels cannot read. All readers of a value
    share one copy, except that the backward pass may have another copy. Operands that a kernel would gather are copied
    for each reader."""
    lasting = copied_again(graph, context)
    copies: dict[tuple[Value, bool], Value] = {}

    def copy_of(v: Value, is_again: bool) -> Value:
        if (v, is_again) not in copies:
            origin = base(v).node.origin
            phase = BACKWARD if is_again and not is_after_loss(origin) else origin.phase
            copies[v, is_again] = copied_for(v, v.node.origin.scope, phase)
        return copies[v, is_again]

    def shown(v: Value, is_again: bool) -> Value:
        """v if it has a layout, otherwise the same view of a copy."""
        if layout(v) is not None:
            return v
        source = shown(v.node.operands[0], is_again)
        made = v.node.with_operands((source,)).results[0]
        return v.node.with_operands((copy_of(source, is_again),)).results[0] if layout(made) is None else made

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...]:
        lower = node.op.lower
        again = [is_after_loss(node.origin) and v.base in lasting for v in node.operands]
        operands = tuple([shown(v, is_again) for v, is_again in zip(operands, again, strict=True)])
        failing = unreadable(node, operands)
        if isinstance(lower, RowContraction) and lower.call is not None and 0 in failing:
            pixels = copy_of(apply("permute", operands[0], dims=(1, 0)), again[0])
            operands, failing = (apply("permute", pixels, dims=(1, 0)), *operands[1:]), failing - {0}
        fixed = [copy_of(v, again[i]) if i in failing else v for i, v in enumerate(operands)]
        made = node.with_operands(tuple(fixed))
        return (_with_rows(made, context) if isinstance(lower, KernelOp) else made).results

    made = rewritten(graph, rewrite, [n for n in graph.nodes if not isinstance(n.op.lower, View)])
    return made.with_roots([shown(v, False) for v in made.roots])


def _with_rows(node: Node, context: Context) -> Node:
    """The call with copies of the operands that it would gather, where they are cheaper."""
    copies, at = better_copied(node, context), node.origin
    fixed = [copied_for(v, at.scope, at.phase) if i in copies else v for i, v in enumerate(node.operands)]
    return node.with_operands(tuple(fixed))


def _with_owned_roots(graph: Graph) -> Graph:
    """The graph in which each output and each new state is a separate array that a node computes; others are copied.
    New states come first: where an output is also a new state, the output is copied."""
    taken: set[Value] = set()

    def owned(v: Value) -> Value:
        source, at = base(v), layout(v)
        free = isinstance(source.node.op.lower, (Leaf, Iota, Extent))
        whole = v is source or (at is not None and at.dense and source.type.bytes == v.type.bytes)
        if free or not whole or source in taken:
            v = copied(v)
            source = v
        taken.add(source)
        return v

    # A loop reads its operands after it has begun to write its carries. Nodes before the guard must not write states.
    early, _ = guarded(graph)
    updates = [
        owned(copied(v) if isinstance(base(v).node.op.lower, Scan | Cond) or base(v).node in early else v)
        for v in graph.updates.values()
    ]
    outputs = [owned(v) for v in graph.outputs.values()]
    return graph.with_roots([*outputs, *updates, *([] if graph.bound is None else [graph.bound])])


def _late_reads(graph: Graph) -> list[tuple[Node, int]]:
    """Nodes that read an old state too late, and the number of this operand. They read it after the writer, or inside
    the contraction that overwrites it.
    """
    late: list[tuple[Node, int]] = []
    order = OrderedDag(graph.nodes, {n: [v.node for v in n.operands] for n in graph.nodes})
    for writer, readers in ordering_edges(graph).items():
        for reader in readers:
            if not order.add_edge(reader, writer):
                late += [(reader, i) for i, v in enumerate(reader.operands) if _written_by(v, writer, graph)]
    for state, new in graph.updates.items():
        node = base(new).node
        if isinstance(node.op.lower, (Contraction, KernelOp)):
            into = next(iter(added_operands(node)), None)
            late += [(node, i) for i, v in enumerate(node.operands[:into]) if state_of(v) is state]
            if (
                into is not None
                and base(new) is node.results[0]
                and state_of(node.operands[into]) is not state
            ):
                raise AssertionError("accumulate adds into another state than it updates")
    return late


def _written_by(v: Value, writer: Node, graph: Graph) -> bool:
    state = state_of(v)
    return state is not None and state in graph.updates and base(graph.updates[state]).node is writer


def copy_insertion(graph: Graph, context: Context) -> Graph:
    """See the module."""
    new = _with_owned_roots(_with_copies(graph, context))
    return with_old_states_copied(new, _late_reads(new))


def with_old_states_copied(graph: Graph, reads: Sequence[tuple[Node, int]]) -> Graph:
    """The graph in which these nodes read a copy of an old state as the operand of that index."""
    if not reads:
        return graph
    indices: dict[Node, set[int]] = {}
    for node, i in reads:
        indices.setdefault(node, set()).add(i)

    def copy_of(v: Value, node: Node) -> Value:
        state = state_of(v)
        assert state is not None
        # the states of a loop are the values that its iterations pass on
        results = [base(r) for region in node.regions for r in region.results] or node.results
        if not graph.inner:
            return snapshot(v, state)
        copy = snapshot(v, state, results[0].node.origin.phase)
        return with_label_of(copy, v) if label_of(v) is not None else copy

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...] | None:
        fixed = tuple(copy_of(v, node) if i in indices[node] else v for i, v in enumerate(operands))
        return node.with_operands(fixed).results

    return rewritten(graph, rewrite, indices)
