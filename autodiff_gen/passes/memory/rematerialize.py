"""Rematerialise elementwise values: the backward pass recomputes values of the forward pass from stored values, where
the arena becomes so much smaller that it is worth the time.

    entry f(x: f32[1,4], w: f32[4,16], v: f32[16,2], dy: f32[1,2])
      %0: f32[1,16] = matmul(x, w)
      %1: f32[1,16] = silu(%0)
      %2: f32[1,2] = matmul(%1, v)
      %3: f32[16,1] = permute(%1, dims=(1, 0))
      %4: f32[16,2] = matmul(%3, dy)
      %5: f32[1,16] = sigmoid(%0)
      y <- %2
      dv <- %4
      ds <- %5
    ->
    entry f(x: f32[1,4], w: f32[4,16], v: f32[16,2], dy: f32[1,2])
      %0: f32[1,16] = matmul(x, w)
      %1: f32[1,16] = silu(%0)
      %2: f32[1,2] = matmul(%1, v)
      %3: f32[1,16] = silu(%0)
      %4: f32[16,1] = permute(%3, dims=(1, 0))
      %5: f32[16,2] = matmul(%4, dy)
      %6: f32[1,16] = sigmoid(%0)
      y <- %2
      dv <- %5
      ds <- %6

Normalised values are recomputed too if their statistics are stored, and so are activations of them and sums of both. A
value is recomputed only from values that are stored in any case:
- values that the backward pass reads directly, or through several functions of only this value;
- other values that the backward pass reads, if they cannot be recomputed from these;
- inputs, states and constants, which are read before a state changes.
In a chain in which each value is the only reader of the one before, such as a product and its sum with a bias, the last
value is stored. If the backward pass reads a value only through one function, as softmax reads its scores, the result
of the function is stored instead of the value.
Concatenations are recomputed from their parts, which take no more memory. Where a larger concatenation contains others,
as in a dense block, the larger one is stored, and the others and all parts are windows of it.
All readers of a value share one copy of it. Where that is worth the time, each kernel that reads the value has a
separate copy, and so have the loops of each layer.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

from ...ir.graph import Graph
from ...ir.node import Node, Value, base
from ...ir.op_kinds import Assemble, Elementwise, Leaf, Pick, View
from ...ir.origin import BACKWARD, is_after_loss
from ...ir.rewrite import rewritten
from ...ir.traits import compared_with_their_extremes, is_free, is_fusable
from ...ir.types import planned_size
from ..arena_use import liveness
from ..context import Context
from ..profitability import excess, is_worth_its_time, takes_no_more
from .nested_concatenations import WindowIn, contained, read_in
from .recomputation import SMALLEST_PART, copy_of, is_large_part
from .snapshot_states import with_early_updates


def rematerialize(graph: Graph, context: Context) -> Graph:
    """See the module."""
    if graph.inner:
        return graph
    late = [n for n in graph.nodes if is_after_loss(n.origin)]
    best, tried = graph, dict[Value, frozenset[Value]]()
    whole = contained([n for n in graph.nodes if not is_after_loss(n.origin)])
    compared = compared_with_their_extremes(graph.nodes)
    kept = (set[Value](), compared) if compared else (compared,)
    # functions: recompute only expressions, or results of functions such as exp too
    for once, places, functions in itertools.product(kept, ({}, whole) if whole else ({},), (False, True)):
        forward = _Forward(graph, functions, places, once)
        again = {v: forward.sources[v.base] for n in late for v in n.operands if forward.is_computed_again(v)}
        changed = {base(v) for v in again.keys() | tried.keys() if again.get(v) != tried.get(v)}
        if not changed or not is_large_part(changed, graph, context):
            continue
        tried = again
        readers = [n for n in late if not again.keys().isdisjoint(n.operands)]
        stored = {base(v) for v in again}
        values = [v for n in graph.nodes for v in n.results if v in stored]
        read_again = functools.partial(_read_again, graph, forward, readers)
        shared = read_again(values)
        best = shared if _is_worth_it(shared, best, context) else best
        each = read_again([])  # copies for each reader, which takes more time
        if not _differ(each, shared):
            continue
        if _is_worth_it(each, best, context):
            best = _with_most_shared(each, values, context, read_again)
        elif best is shared and _may_be_smaller(each, best, context):
            by_layer = functools.partial(read_again, by_layer=True)
            best = _with_fewer_shared(best, values, context, by_layer)
    return best


def _is_worth_it(new: Graph, old: Graph, context: Context) -> bool:
    """Whether `new` is worth its time where `snapshot_states` may copy states after it."""
    return is_worth_its_time(with_early_updates(new, context), with_early_updates(old, context), context)


def _may_be_smaller(each: Graph, best: Graph, context: Context) -> bool:
    """Whether a graph with more copies than `best` may make the arena smaller by at least SMALLEST_PART. The estimate
    is a lower bound of the peak of `each`, the graph in which no readers share copies. True if `best` exceeds the
    budget."""
    if not context.weighs_memory:
        return False
    each, best = with_early_updates(each, context), with_early_updates(best, context)
    if excess(best, context):
        return True
    least, _ = liveness(each, context).least_height
    return least <= (1 - SMALLEST_PART) * liveness(best, context).peak


def _with_fewer_shared(
    best: Graph, values: Sequence[Value], context: Context, shared: Callable[[Sequence[Value]], Graph]
) -> Graph:
    """`best`, in which all readers share the copies of these values, or a graph with fewer shared copies. Readers of
    values of the layers at the peak then have separate copies, as long as that is worth the time."""
    for scopes in _layers_at_the_peak(best, context):
        fewer = [v for v in values if v.node.origin.scope not in scopes]
        found = shared(fewer)
        if _differ(found, best) and _is_worth_it(found, best, context):
            return _with_fewer_shared(found, fewer, context, shared)
    return best


def _with_most_shared(
    each: Graph, values: Sequence[Value], context: Context, shared: Callable[[Sequence[Value]], Graph]
) -> Graph:
    """`each`, in which every reader has separate copies, or a graph in which readers share the copies of the first
    values. It shares as many as possible without a larger arena. The backward pass reads the first values last, when
    memory is free again."""
    best, few, many = each, 0, len(values)
    while many - few > 1:
        middle = (few + many) // 2
        found = shared(values[:middle])
        if takes_no_more(with_early_updates(found, context), with_early_updates(each, context), context):
            best, few = found, middle
        else:
            many = middle
    return best


def _differ(fewer: Graph, more: Graph) -> bool:
    """Whether fewer readers share copies in the first graph, which then has more copies."""
    return len(fewer.nodes) != len(more.nodes)


def _layers_at_the_peak(graph: Graph, context: Context) -> tuple[set[str], set[str]]:
    """The layers of all values of the backward pass that are alive at the peak, and the layers of the largest of these
    values."""
    alive = liveness(with_early_updates(graph, context), context).at_the_peak
    late = [v for v in alive if is_after_loss(v.node.origin)]
    largest = [v for v in late if v.type.bytes == late[0].type.bytes]
    return {v.node.origin.scope for v in late}, {v.node.origin.scope for v in largest}


def _read_again(
    graph: Graph, forward: _Forward, readers: Sequence[Node], shared: Sequence[Value], by_layer: bool = False
) -> Graph:
    """The graph in which these nodes read copies. All nodes share one copy of each value in `shared`. by_layer: as for
    _copies."""
    copies = _copies(frozenset(shared), by_layer)
    return rewritten(graph, functools.partial(forward.read_again, copies), readers)


_COMPUTED_AGAIN = (Elementwise, Pick, Assemble)
Copies: TypeAlias = Callable[[Node, Value], dict[Value, Value]]


def _copies(shared: frozenset[Value], by_layer: bool) -> Copies:
    """A function from a node and a value that it reads to the copies that the node may read instead. All nodes share
    the copies of the values in `shared`. Other values have separate copies for each kernel and for the loops of each
    layer. by_layer: a kernel reads the copies that the loops of the value's layer read."""
    made: dict[object, dict[Value, Value]] = {}

    def of(reader: Node, v: Value) -> dict[Value, Value]:
        kernel = v.base.node.origin.scope if by_layer else reader
        key: object = reader.origin.scope if is_fusable(reader) else kernel
        return made.setdefault(None if v.base in shared else key, {})

    return of


class _Forward:
    """The values of the forward pass. functions: whether results of functions are recomputed; places: the place of each
    value that is read as a window of a larger value; once: values that are never recomputed; kept: the values that are
    stored for the backward pass; sources: the stored values that each value is an elementwise function of, without
    broadcast values, or only the value itself if it is stored."""

    def __init__(
        self, graph: Graph, functions: bool, places: Mapping[Value, WindowIn], once: Collection[Value]
    ) -> None:
        self.graph, self.roots = graph, graph.outside_arena
        self.functions, self.places, self.once = functions, places, once
        self.whole = {y for y, _ in places.values()}
        self.compared = compared_with_their_extremes(graph.nodes)  # their comparisons read no copies
        self.sources: dict[Value, frozenset[Value]] = {}
        values = [r for node in graph.nodes for r in node.results]
        for r in values:
            self.sources[r] = self._sources(r)
        late = [n for n in graph.nodes if is_after_loss(n.origin) and not isinstance(n.op.lower, View)]
        read = {v.base for n in late for v in n.operands if not self._is_compared(n, v)}
        by_source: dict[Value, set[Value]] = {}
        for v in read:
            for source in self.sources[v]:
                by_source.setdefault(source, set()).add(v)
        # if a value is the only reader of its source, it takes the source's place in memory
        alone = {
            v for v in read if len(self.sources[v]) == 1 and all(by_source[s] == {v} for s in self.sources[v])
        }
        self.kept = {s for v in read - alone if len(self.sources[v]) == 1 for s in self.sources[v]}
        for r in values:
            self.sources[r] = self._sources(r)
            missing = self.sources[r] - self.kept
            if r not in read or not (missing or r in alone):
                continue
            parts = isinstance(r.node.op.lower, Assemble) or all(v.type.bytes < r.type.bytes for v in missing)
            if r not in alone and parts and sum(v.type.bytes for v in missing) <= r.type.bytes:
                self.kept |= missing
            else:
                self.sources[r] = frozenset([r])
                self.kept.add(r)

    def _sources(self, v: Value) -> frozenset[Value]:
        node = v.node
        if isinstance(node.op.lower, View):
            return self.sources[node.operands[0]]
        alone = frozenset([v])
        if v in self.places and v not in self.roots:
            return frozenset([self.places[v][0]])
        if (
            v in self.whole
            or v in self.once
            or not isinstance(node.op.lower, _COMPUTED_AGAIN)
            or is_after_loss(node.origin)
            or v in self.roots
        ):
            return alone
        if not self.functions and isinstance(node.op.lower, Elementwise) and node.op.lower.calls:
            return alone
        broadcasts = not isinstance(node.op.lower, Assemble)
        size, found = planned_size(v.type.shape), set[Value]()
        for u in map(base, node.operands):
            if broadcasts and planned_size(u.type.shape) < size:
                continue  # such as statistics: stored in addition to the sources
            if not isinstance(u.node.op.lower, Leaf) and not is_free(u.node):
                found |= self.sources[u]
        if len(found) == 1 and self._takes_the_place(v, *found):
            return alone
        return frozenset(found)

    def _takes_the_place(self, v: Value, source: Value) -> bool:
        """Whether only v's node reads the source of v, and v is no larger than the source."""
        return v.type.bytes <= source.type.bytes and {*self.graph.readers(source)} == {v.node}

    def is_computed_again(self, v: Value) -> bool:
        """Whether the readers of v in the backward pass read a copy."""
        found = self.sources[v.base]
        return found != {v.base} and found <= self.kept

    def read_again(self, of: Copies, node: Node, operands: tuple[Value, ...]) -> Sequence[Value]:
        """The results of the node when it reads copies."""
        rows = zip(node.operands, operands, strict=True)
        new = [
            self._copy(old, of(node, old))
            if self.is_computed_again(old) and not self._is_compared(node, old)
            else v
            for old, v in rows
        ]
        return node.with_operands(tuple(new)).results

    def _is_compared(self, node: Node, v: Value) -> bool:
        """Whether a node compares elements of v with their extreme: it must then read v itself, not a copy."""
        return node.op.equality and v.base in self.compared

    def _copy(self, v: Value, copies: dict[Value, Value]) -> Value:
        for u, place in self.places.items():
            if u not in copies and self.is_computed_again(u):
                copies[u] = read_in(place, u)
        return copy_of(v, self._is_copied, copies, BACKWARD)

    def _is_copied(self, v: Value) -> bool:
        return isinstance(v.node.op.lower, View) or self.is_computed_again(v)
