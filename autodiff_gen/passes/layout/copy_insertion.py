"""Copy insertion: values get memory of their own where a view or an alias cannot serve.

    entry f(x: f32[4])            entry f(x: f32[4])
      %0: f32[4] = add(w, x)        %0: f32[4] = copy(w)
      y <- w                  ->    %1: f32[4] = add(w, x)
      w' <- %0                      y <- %0
                                    w' <- %1

- A reshape that does not line up with its operand's strides, and an operand that its kernel cannot read.
- An operand with gaps between the elements of its rows, where the kernel would gather it more often than a copy costs.
- What both passes read is copied again in the backward pass, or all of that reads the copy of the forward pass, so
  that what was copied is not kept, where the arena becomes so much smaller that it is worth the time.
- An output or new state that is a view, a leaf, or the value of another output or state.
- An old state that is read after, or at other indices than, its new value is written. The copy, a snapshot, has the
  attribute of that name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto

from ...ir.added_terms import added_operands
from ...ir.build import apply
from ...ir.dependences import guarded, ordering_edges, state_of
from ...ir.graph import Graph
from ...ir.node import Node, Value, base
from ...ir.op_kinds import (
    Call,
    Cond,
    Contraction,
    Elementwise,
    Extent,
    Iota,
    Leaf,
    RowContraction,
    Scan,
    View,
)
from ...ir.ordered_dag import OrderedDag
from ...ir.origin import BACKWARD, UPDATE, is_late
from ...ir.rewrite import rewritten
from ...ir.traits import has_address
from ...ir.views import layout
from ..context import Context
from ..worth import is_worth_its_time, weighs_memory
from .copies import copied, copied_for, snapshot
from .readable_operands import better_copied, readable_by_kernels, unreadable


class Late(Enum):
    """What the backward pass reads of a value that is copied for kernels of the forward pass: that copy, where it reads
    the same view; a copy of its own; or that copy for whatever view, in its loops too."""

    ONCE = auto()
    AGAIN = auto()
    SHARED = auto()


def _with_readable_operands(graph: Graph, context: Context, late: Late) -> tuple[Graph, tuple[int, int]]:
    """Views that fail and operands that do not serve are copied, each once for all its readers, and for those of the
    backward pass as `late` says. What would be gathered is copied anew for each reader, so that the copy of an image
    does not take memory until the backward pass. Also returns how many copies there are for several readers, and how
    many permutes of them."""
    copies: dict[tuple[Value, bool], dict[Value, Value]] = {}  # of the views of a value
    read: list[Value] = []  # permutes of copies

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...] | None:
        lower, is_again = node.op.lower, late is Late.AGAIN and is_late(node.origin)

        def known(v: Value, serves: Callable[[Value], bool]) -> Value | None:
            """A permute of a copy of another view of the same elements."""
            views = copies.get((base(v), is_again), {}) if late is Late.SHARED else {}
            permutes = (_permuted(copy, view, v) for view, copy in views.items())
            found = [p for p in permutes if p is not None and serves(p)][:1]
            read.extend(found)
            return found[0] if found else None

        def copy_of(v: Value, serves: Callable[[Value], bool] = lambda v: False) -> Value:
            of_base = copies.setdefault((base(v), is_again), {})
            if v not in of_base:
                if (found := known(v, serves)) is not None:
                    return found
                of_base[v] = copied_for(v, v.node.origin.scope, BACKWARD) if is_again else copied(v)
            return of_base[v]

        if isinstance(lower, View):
            made = node.with_operands(operands)
            if layout(made.results[0]) is None:
                made = node.with_operands((copy_of(operands[0]),))
            return made.results
        if isinstance(lower, (Contraction, RowContraction)):
            failing = unreadable(node, operands)
            if isinstance(lower, RowContraction) and lower.call is not None and 0 in failing:
                pixels = copy_of(apply("permute", operands[0], dims=(1, 0)))
                operands, failing = (apply("permute", pixels, dims=(1, 0)), *operands[1:]), failing - {0}
            fixed = [
                copy_of(v, readable_by_kernels) if i in failing else v for i, v in enumerate(operands[:2])
            ]
            rest = [copy_of(v) if i in failing else v for i, v in enumerate(operands[2:], start=2)]
            return node.with_operands((*fixed, *rest)).results
        if isinstance(lower, Elementwise):
            found = [known(v, has_address) if is_late(node.origin) else None for v in operands]
            fixed = [v if copy is None else copy for v, copy in zip(operands, found, strict=True)]
            return node.with_operands(tuple(fixed)).results if any(v is not None for v in found) else None
        if isinstance(lower, (Call, Scan, Cond)):
            failing = unreadable(node, operands)
            fixed = [copy_of(v) if i in failing else v for i, v in enumerate(operands)]
            made = node.with_operands(tuple(fixed))
            return (_with_rows(made, context) if isinstance(lower, Call) else made).results
        return None

    kinds = (View, Contraction, RowContraction, Call, Scan, Cond)
    new = rewritten(graph, rewrite, graph.of(*kinds, *([Elementwise] if late is Late.SHARED else [])))
    return new, (sum(map(len, copies.values())), len(read))


def _permuted(copy: Value, view: Value, v: Value) -> Value | None:
    """v as a permute of a copy of another view of the same elements; None where it is no permute."""
    one, other = layout(view), layout(v)
    if one is None or other is None or one.offset != other.offset:
        return None
    axes = list(zip(one.shape, one.strides, strict=True))
    wanted = list(zip(other.shape, other.strides, strict=True))
    if sorted(axes, key=str) != sorted(wanted, key=str) or len(set(axes)) < len(axes):
        return None
    return apply("permute", copy, dims=tuple([axes.index(axis) for axis in wanted]))


def _with_rows(node: Node, context: Context) -> Node:
    """The call with copies of the operands that it would gather, where they are cheaper."""
    copies, at = better_copied(node, context), node.origin
    fixed = [copied_for(v, at.scope, at.phase) if i in copies else v for i, v in enumerate(node.operands)]
    return node.with_operands(tuple(fixed))


def _with_owned_roots(graph: Graph) -> Graph:
    """New states first, so that an output which is also a new state is the one that is copied."""
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

    # a loop reads its operands after it has begun to write its carries; what the guard needs is there before it
    early, _ = guarded(graph)
    updates = [
        owned(copied(v) if isinstance(base(v).node.op.lower, Scan | Cond) or base(v).node in early else v)
        for v in graph.updates.values()
    ]
    outputs = [owned(v) for v in graph.outputs.values()]
    return graph.with_roots([*outputs, *updates, *([] if graph.bound is None else [graph.bound])])


def _late_reads(graph: Graph) -> list[tuple[Node, int]]:
    """Nodes, and which of their operands is an old state that they read too late: after the writer, or inside the
    contraction that overwrites it.
    """
    late: list[tuple[Node, int]] = []
    order = OrderedDag(graph.nodes, {n: [v.node for v in n.operands] for n in graph.nodes})
    for writer, readers in ordering_edges(graph).items():
        for reader in readers:
            if not order.add_edge(reader, writer):
                late += [(reader, i) for i, v in enumerate(reader.operands) if _written_by(v, writer, graph)]
    for state, new in graph.updates.items():
        node = base(new).node
        if isinstance(node.op.lower, (Contraction, Call)):
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
    once, copies = _with_copies(graph, context, Late.ONCE)
    best = once
    for late in (Late.AGAIN, Late.SHARED) if any(copies) and weighs_memory(context) else ():
        new, others = _with_copies(graph, context, late)
        if others != copies and is_worth_its_time(new, best, context):
            best = new
    return best


def _with_copies(graph: Graph, context: Context, late: Late) -> tuple[Graph, tuple[int, int]]:
    def made() -> tuple[Graph, tuple[int, int]]:
        readable, copies = _with_readable_operands(graph, context, late)
        new = _with_owned_roots(readable)
        return with_old_states_copied(new, _late_reads(new)), copies

    return context.analysis((_with_copies, graph, late), made)


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
        # the states of a loop are what its iterations pass on
        results = [base(r) for region in node.regions for r in region.results] or node.results
        return snapshot(v, state, results[0].node.origin.phase if graph.inner else UPDATE)

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...] | None:
        fixed = tuple(copy_of(v, node) if i in indices[node] else v for i, v in enumerate(operands))
        return node.with_operands(fixed).results

    return rewritten(graph, rewrite, indices)
