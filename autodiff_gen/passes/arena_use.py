"""The part of the arena that a graph takes, estimated without planning: its partition into steps, the memory that steps
may reuse, and the scratch memory of kernels.

The analysis counts the buffers that the planner will place, and the copies that `copy_insertion` will insert.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Mapping, Sequence

from ..ir.added_terms import added_to, adding_op
from ..ir.dependences import state_of
from ..ir.graph import Graph
from ..ir.liveness import Computation, Liveness
from ..ir.node import Node, Region, Value, base
from ..ir.op_kinds import Cond, KernelOp, Leaf, Reduce, RowContraction, Scan
from ..ir.origin import is_after_loss
from ..ir.scan_memory import reused_by_stacks
from ..ir.traits import is_free, key_of
from ..ir.types import planned_size
from ..ir.views import is_stored_as, known_layout, layout, whole_views
from .calls.kernel_calls import call_in_place, call_of, is_gathered
from .context import Context
from .fusion.fused_node import fused_node
from .fusion.partition import StepNodes, partition
from .layout.copies import better_copied, copied, copied_again, unreadable
from .loops.shared_nests import nest_of


def liveness(graph: Graph, context: Context) -> Liveness:
    """The liveness of the values of a graph; computed once for each graph."""
    return context.analysis((liveness, graph), lambda: _liveness(graph, context))


def _liveness(graph: Graph, context: Context) -> Liveness:
    copies = _Copies(graph, context)
    parts = partition(graph, context.cost)
    read = [copies.read_by(part) for part in parts]
    readers = Counter(v for values in read for v in values)
    arena = {v: count for v, count in readers.items() if v not in graph.outside_arena}
    computations = [
        _of_loops(part, reads, context)
        if part.is_loop
        else _of_node(part.nodes[0], graph, reads, arena, context)
        for part, reads in zip(parts, read, strict=True)
    ]
    return Liveness(graph, [*copies.computations(), *computations], graph.outside_arena, context.first)


class _Copies:
    """The copies of operands that cannot be read in place. All readers of a value share one copy. A value that is in
    memory in the backward pass anyway has one copy for each pass. An operand that is only cheaper to copy has a copy
    for each reader."""

    def __init__(self, graph: Graph, context: Context) -> None:
        self._context, self._lasting = context, copied_again(graph, context)
        self._made: dict[tuple[Value, Node | bool], Value] = {}

    def read_by(self, part: StepNodes) -> list[Value]:
        """The memory that a part reads."""
        inside = {r for n in part.nodes for r in n.results}
        read: dict[Value, None] = {}
        for n in part.nodes:
            failing = unreadable(n, n.operands)
            is_call = isinstance(n.op.lower, KernelOp) and all(layout(v) is not None for v in n.operands)
            better = better_copied(n, self._context) if is_call else set()
            for i, v in enumerate(n.operands):
                if v.base not in inside and not is_free(v.base.node):
                    readers = v.base in self._lasting and is_after_loss(n.origin) if i in failing else n
                    is_copied = i in failing or i in better
                    read[self._made.setdefault((v, readers), copied(v)) if is_copied else v.base] = None
        return list(read)

    def computations(self) -> list[Computation]:
        return [Computation((), [c.node], [v.base], [c], is_loop=True) for (v, _), c in self._made.items()]


def _of_node(
    node: Node,
    graph: Graph,
    reads: Sequence[Value],
    arena: Mapping[Value, int],
    context: Context,
) -> Computation:
    """The computation of a node by a kernel, or by the steps of its regions. arena: the values in the arena that are
    read, with the number of parts that read each."""
    scratch = 0
    reuses: dict[Value, Sequence[Value]] = {}
    (*others, result) = node.results
    if isinstance(node.op.lower, Scan | Cond):
        scratch = max(_of_region(region, context) for region in node.regions)
        if isinstance(node.op.lower, Scan) and "samples" not in node.attrs:
            reuses = {node.results[k]: [base(v)] for k, v in reused_by_stacks(node, graph).items()}
    elif context.backends is not None and all(layout(v) is not None for v in node.operands):
        in_place = None if others else call_in_place(node, arena, context.backends)
        reuses = {} if in_place is None else {result: [node.operands[0].base]}
        call = in_place or call_of(node)
        kernel = context.backends.select(call.kernel, call.facts())
        scratch = 0 if kernel.scratch_optional else call.scratch(kernel.scratch)
    if (old := added_to(node)) is not None:
        reuses = {} if state_of(old) is not None else {result: [old.base]}
    return Computation([node], [node], reads, node.results, scratch, reuses)


def _of_region(region: Region, context: Context) -> int:
    """The arena of a region, whose results are stored outside."""
    users = Counter(v for n in region.nodes for v in n.operands)
    outputs = {str(k): _without_sum(v, region, users) for k, v in enumerate(region.results)}
    graph = Graph("region", region.params, outputs, inner=True)
    found: Liveness = context.analysis(
        (liveness, region.params, region.results), lambda: _liveness(graph, context)
    )
    return found.peak


def _without_sum(v: Value, region: Region, users: Mapping[Value, int]) -> Value:
    """If the result v of a region adds a product to a carry, the product, since its kernel adds to the carry in place;
    otherwise v."""
    if v.node.op.signs == (1, 1) and any(u in region.params for u in v.node.operands):
        for u in v.node.operands:
            way = whole_views(u)
            if adding_op(way[-1].node) and all(users[w] == 1 for w in way):
                return way[-1]
    return v


def _of_loops(part: StepNodes, reads: Sequence[Value], context: Context) -> Computation:
    scratch = _scratch_of_loops(part, context)
    return Computation(part.nodes, part.nodes, reads, part.stored, scratch, _reuses(part), is_loop=True)


def _scratch_of_loops(part: StepNodes, context: Context) -> int:
    """The bytes that loops store between them; computed once for parts of the same structure."""
    is_one_loop = len({r.type.shape for n in part.nodes for r in n.results}) == 1
    if is_one_loop and not any(isinstance(n.op.lower, RowContraction) for n in part.nodes):
        return 0

    def found() -> int:
        node = fused_node(part.nodes, part.stored, lambda v: copied(v) if layout(v) is None else v)
        nest = nest_of(node, context)
        operand = dict(zip(nest.region.params, node.operands, strict=True))
        gathered = [
            at.shape[1:]
            for n in nest.roots
            if isinstance(n.op.lower, RowContraction) and nest.block_of(n.results[0]) is None
            if is_gathered(n, at := known_layout(operand[n.operands[0]]))
        ]
        return nest.scratch_bytes + sum(4 * planned_size(shape) for shape in gathered)

    return context.analysis((_scratch_of_loops, _structure(part)), found)


def _structure(part: StepNodes) -> Hashable:
    """Equal for parts that compute the same from operands with the same types and layouts."""
    number: dict[Value, Hashable] = {}
    keys = []
    for n in part.nodes:
        operands = tuple(
            [
                (number.setdefault(v.base, len(number)), v.type.dtype, v.type.shape, _place(v))
                for v in n.operands
            ]
        )
        keys.append(key_of(n, operands))
        for r in n.results:
            number.setdefault(r, len(number))
    return tuple(keys), tuple([number[r] for r in part.stored])


def _place(v: Value) -> Hashable:
    """Where the elements of an operand are: its layout, or the operand itself if it has none or the loops compute
    it."""
    return v if is_free(v.base.node) else layout(v) or v


def _reuses(part: StepNodes) -> dict[Value, list[Value]]:
    """For each result of a group of loops, the values whose memory the result may be stored in. Such a value has the
    size of the result, and the loops read each of its elements at the same place before they write the result there.

    Loops that need a sum run after the loops that compute it. The number of a loop is the length of the longest chain
    of such sums before it. The place of a store is the number of its loop, and its number among the nodes.
    """
    inside = {r for n in part.nodes for r in n.results}
    stored = {*part.stored}
    place: dict[Node, tuple[int, int]] = {}
    last: dict[Value, tuple[int, int]] = {}  # the place of the last store, or sum, that reads a value
    views: dict[Value, list[Value]] = defaultdict(list)
    for k, n in enumerate(part.nodes):
        read, sums = _read_in_loop(n, inside, stored)
        after = [place[s][0] + 1 for s in sums] + [place[v.node][0] for v in read if v.node in place]
        place[n] = max(after, default=0), k
        for v in n.operands:
            views[v.base].append(v)
        if isinstance(n.op.lower, Reduce) or not stored.isdisjoint(n.results):
            last.update((v, max(place[n], last.get(v, place[n]))) for v in read)
    memory = [v for v in views if v in stored or not (v in inside or isinstance(v.node.op.lower, Leaf))]
    found = {}
    for r in part.stored:
        fits = [
            v for v in memory if v is not r and v.type.dtype is r.type.dtype and v.type.bytes == r.type.bytes
        ]
        fits = [v for v in fits if v not in last or last[v] <= place[r.node]]
        fits = [v for v in fits if all(is_stored_as(u, r) for u in views[v])]
        if fits:
            found[r] = fits
    return found


def _read_in_loop(
    node: Node, inside: Collection[Value], stored: Collection[Value]
) -> tuple[list[Value], list[Node]]:
    """The memory that the expression of a node reads in its loop, and the sums of the same group that it needs."""
    read: dict[Value, None] = {}
    sums: list[Node] = []
    pending, seen = [node], {node}
    while pending:
        for v in map(base, pending.pop().operands):
            if v not in inside or v in stored:
                read[v] = None
            if v in inside and isinstance(v.node.op.lower, Reduce):
                sums.append(v.node)
            elif v not in read and v.node not in seen:
                seen.add(v.node)
                pending.append(v.node)
    return list(read), sums
