"""Micro-batches: divide a batch whose size is given at run time, where the arena would exceed the RAM budget, or where
it would exceed a cache and the division takes less time. A loop computes the values with an axis of samples for a few
samples at a time, and adds up the sums over the batch.

    entry f(x: f32[n,4], w: f32[4,2])
      %0: f32[n,2] = matmul(x, w)
      %1: f32[4,n] = permute(x, dims=(1, 0))
      %2: f32[n,2] = tanh(%0)
      %3: f32[4,2] = matmul(%1, %2)
      %4: f32[4,2] = mul(%3, 0.5)
      y <- %0
      dw <- %4
    ->
    entry f(x: f32[n,4], w: f32[4,2])
      %0: f32[4,2] = broadcast_to(0.0, shape=(4, 2))
      %1: f32[4,2], %2: f32[n,2] = scan(%0, x, w, carries=1, xs=1, length=n, reverse=False, axes=(0,), samples=3)
          with %3 product_sum: f32[4,2], %4 x_part: f32[count,4], %5 w: f32[4,2]
          %6: f32[4,count] = permute(%4, dims=(1, 0))
          %7: f32[count,2] = matmul(%4, %5)
          %8: f32[count,2] = tanh(%7)
          %9: f32[4,2] = matmul(%6, %8)
          %10: f32[4,2] = add(%3, %9)
          yield %10, %7
      %11: f32[4,2] = mul(%1, 0.5)
      y <- %2
      dw <- %11

The body is the graph itself, for a smaller batch. A sum that takes more memory than its operands is computed after the
loop, from operands that the loop stores. A value that mixes samples, such as the sum of the weights of a loss, is
computed before the loop if no product leads to it. Otherwise, as with BatchNorm in training, the batch is not divided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any

from ...ir.batch_axis import Mixed, axis_of_samples, check, follows, of_samples, part
from ...ir.build import apply, filled
from ...ir.closures import param
from ...ir.graph import Graph
from ...ir.names import name_of
from ...ir.node import CONST, INPUT, OPS, STATE, Node, Region, Value, base
from ...ir.op_kinds import Contraction, Extent, Iota, KernelOp, Leaf, Scan, View, ViewKind
from ...ir.origin import Label, Origin, building_as
from ...ir.rewrite import replaced
from ...ir.traits import view_kind
from ...ir.types import Dim, planned_size
from ..context import Context

NOT_FIRST = "does not have the samples along its first axis"


def micro_batches(graph: Graph, context: Context) -> Graph:
    """See the module."""
    if graph.inner or context.samples is None:
        return graph
    try:
        return divided(graph, context.samples)
    except Mixed as mixed:
        context.mixed[graph.name] = str(mixed)
        return graph


def is_divided(graph: Graph) -> bool:
    """Whether the graph has a loop over micro-batches."""
    return any("samples" in n.attrs for n in graph.of(Scan))


def parts_of_batch(graph: Graph, tile: int) -> list[int]:
    """The sizes that micro-batches may have, the largest first: a half of the largest batch, a quarter, ... and one. A
    size above `tile`, the number of rows that a kernel computes together, is rounded down to a multiple of it."""
    largest = max((d.cap for v in graph.inputs for d in v.type.shape if isinstance(d, Dim)), default=1)
    halves = (-(-largest // (1 << k)) for k in range(1, largest.bit_length() + 1))
    parts = (most - most % tile if most > tile else most for most in halves)
    return list(dict.fromkeys(most for most in parts if most < largest))


def divided(graph: Graph, most: int) -> Graph:
    """The graph with its batch in parts of at most `most` samples. A graph without products over the batch stays as it
    is. Raises Mixed where the batch cannot be divided."""
    inside, sums = _in_the_loop(graph)
    if not any(map(_is_work, inside)):
        return graph
    computed = {r for n in inside for r in n.results}
    members = {*inside, *sums}
    read = [v for n in graph.nodes if n not in members for v in n.operands]
    stacks = [_stored_by_sample(v) for v in (*graph.roots, *read) if v in computed]
    sums, stacks = _added_up(sums, stacks, computed)
    totals = [_as_read(n.results[0], graph) for n in sums]
    body = _Body(most)
    carries = [param(f"{name_of(v)}_sum", v.type) for v in totals]
    for node in inside:
        body.add(node)
    results = [body.increased(old, v) for old, v in zip(carries, totals, strict=True)]
    results += [body.inside(v) for v in stacks]
    xs = [v for v in body.params if follows(v)]
    captures = [v for v in body.params if not follows(v)]
    region = Region((*carries, *(body.params[v] for v in (*xs, *captures))), tuple(results))
    attrs = {
        "carries": len(carries),
        "xs": len(xs),
        "length": _batch(computed),
        "reverse": False,
        "axes": (0,) * len(stacks),
        "samples": most,
    }
    made = [*totals, *stacks]
    origin = Origin(labels={k: _label(v.base) for k, v in enumerate(made)})
    zeros = [_zeros(v) for v in totals]
    loop = Node(OPS["scan"], (*zeros, *xs, *captures), attrs, tuple(v.type for v in made), (region,), origin)
    return graph.with_roots(replaced(graph.roots, dict(zip(made, loop.results, strict=True))))


def _label(v: Value) -> Label:
    """The label of a value, for the result of the loop that replaces it."""
    origin = v.node.origin
    return origin.labels.get(v.index, Label(v.node.op.name, origin.scope))


def _batch(values: Iterable[Value]) -> Dim:
    dims = {Dim(1, d.cap) for v in values for d in v.type.shape if isinstance(d, Dim)}
    (dim,) = dims
    return dim


def _stored_by_sample(v: Value) -> Value:
    """v, or the first value below the view v that has the batch as its first axis. Raises Mixed if there is none."""
    while axis_of_samples(v) != 0:
        if not isinstance(v.node.op.lower, View) or not follows(v.node.operands[0]):
            raise Mixed(v.node, NOT_FIRST)
        v = v.node.operands[0]
    return v


def _added_up(
    sums: Sequence[Node], stacks: Iterable[Value], computed: Set[Value]
) -> tuple[list[Node], list[Value]]:
    """The sums that the loop adds up, and the values that it stores for all samples. A sum is computed after the loop,
    over all samples, if it takes at least as much memory as the operands that must then be stored in addition. An
    example is the gradient of a large weight of a narrow layer. Such a gradient need not be stored at all where the
    update adds it to the weight."""
    stored, kept = dict.fromkeys(stacks), set(sums)
    for node in sorted(sums, key=lambda n: -n.results[0].type.bytes):
        try:
            read = {_stored_by_sample(v) for v in node.operands if follows(v)}
        except Mixed:
            continue
        more = [v for v in read if v in computed and v not in stored]
        if sum(v.type.bytes for v in more) <= node.results[0].type.bytes:
            stored |= dict.fromkeys(sorted(more, key=lambda v: v.node.serial))
            kept.remove(node)
    return [n for n in sums if n in kept], list(stored)


def _as_read(v: Value, graph: Graph) -> Value:
    """The last view of a sum v, such as the transpose that is the gradient of a parameter, as long as each view is the
    only reader of the value before; otherwise v."""
    while v not in graph.roots and len(readers := graph.users.get(v, ())) == 1:
        if view_kind(readers[0]) not in (ViewKind.PERMUTE, ViewKind.RESHAPE):
            break
        (v,) = readers[0].results
    return v


def _zeros(v: Value) -> Value:
    with building_as(v.node.origin):
        return filled(0, v.type)


def _in_the_loop(graph: Graph) -> tuple[list[Node], list[Node]]:
    """The nodes whose results have an axis of samples, and the nodes that sum over the samples. Both lists leave out
    the nodes that must be computed before the loop. Raises Mixed if one of these nodes computes a product."""
    order = graph.nodes
    inside = [n for n in order if any(map(follows, n.results)) and not isinstance(n.op.lower, Leaf)]
    members = set(inside)
    sums = [n for n in order if n not in members and any(map(follows, n.operands))]
    before: set[Node] = set()
    reason: Mixed | None = None
    while True:
        inside, sums = ([n for n in nodes if n not in before] for nodes in (inside, sums))
        wanted = set[Node]()
        for node in (*inside, *sums):
            try:
                check(node)
            except Mixed as mixed:
                reason = reason or mixed
                wanted.add(node)
        late, members = {*sums}, {*inside}
        for node in order:
            sources = {v.node for v in node.operands} & late
            if sources and node in members:
                reason = reason or Mixed(node, "needs a sum over the samples")
                wanted |= sources
            elif sources:
                late.add(node)
        if not wanted:
            break
        before |= _leading_to(order, wanted)
        if reason is not None and any(_is_work(n) for n in before):
            raise reason
    return inside, sums


def _is_work(node: Node) -> bool:
    """Whether a node computes a product or a scan over the batch, not only a loop over elements."""
    is_product = isinstance(node.op.lower, KernelOp | Contraction | Scan)
    return is_product and any(map(follows, (*node.operands, *node.results)))


def _leading_to(order: Sequence[Node], nodes: set[Node]) -> set[Node]:
    """These nodes, and all nodes that their results depend on."""
    found = set(nodes)
    for node in reversed(order):
        if node in found:
            found |= {v.node for v in node.operands}
    return found


class _Body:
    """The body of the loop, for a part of the batch. params: outer values that it reads, with their params."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.params: dict[Value, Value] = {}
        self.made: dict[Value, Value] = {}

    def add(self, node: Node) -> None:
        """Compute the results of a node for a part of the batch."""
        self.made.update(zip(node.results, self._results(node, self.inside), strict=True))

    def increased(self, old: Value, total: Value) -> Value:
        """The sum over the samples so far, plus the sum over this part."""
        term = self._term(total)
        with building_as(term.node.origin):
            return apply("add", old, term)

    def _term(self, total: Value) -> Value:
        if isinstance(total.node.op.lower, View):
            return self._results(total.node, self._term)[0]
        return self._results(total.node, self.inside)[0]

    def inside(self, v: Value) -> Value:
        """The value in the body that v becomes: a result of the body, a constant or an index as it is, or a param for v
        or for v's part of the batch."""
        node = v.node
        if v in self.made:
            return self.made[v]
        if node.op is CONST or isinstance(node.op.lower, Extent | Iota):
            return v
        if isinstance(node.op.lower, View) and not follows(v) and not follows(node.operands[0]):
            self.add(node)
            return self.made[v]
        if v not in self.params:
            if follows(v) and axis_of_samples(v) != 0:
                raise Mixed(node, NOT_FIRST)
            name = name_of(base(v))
            self.params[v] = param(f"{name}_part" if follows(v) else name, of_samples(v.type, self.most))
        return self.params[v]

    def _results(self, node: Node, inside: Callable[[Value], Value]) -> Sequence[Value]:
        """The results of the node for a part of the batch."""
        operands = tuple(inside(v) for v in node.operands)
        attrs = (
            node.attrs
            if isinstance(node.op.lower, Extent)
            else {k: self._part(a) for k, a in node.attrs.items()}
        )
        types = tuple(of_samples(r.type, self.most) for r in node.results)
        regions = tuple(self._region(r) for r in node.regions)
        made = Node(node.op, operands, attrs, types, regions, node.origin)
        is_index = isinstance(node.op.lower, Iota) and follows(node.results[0])
        return (self._counted_on(node, made.results[0]),) if is_index else made.results

    def _region(self, region: Region) -> Region:
        params = tuple(
            Node(INPUT, (), v.node.attrs, (of_samples(v.type, self.most),), origin=v.node.origin).results[0]
            for v in region.params
        )
        made = dict(zip(region.params, params, strict=True))
        for node in region.nodes:
            if node.op not in (INPUT, STATE, CONST):
                made.update(zip(node.results, self._results(node, lambda v: made.get(v, v)), strict=True))
        return Region(params, tuple(made.get(v, v) for v in region.results))

    def _part(self, attr: Any) -> Any:
        if isinstance(attr, tuple):
            return tuple(self._part(a) for a in attr)
        return part(attr, self.most) if isinstance(attr, Dim) else attr

    def _counted_on(self, node: Node, index: Value) -> Value:
        """The indices of the elements in the whole batch, from which the indices of random numbers are made."""
        (v,) = node.results
        axis = axis_of_samples(v)
        size, extent = planned_size(v.type.shape[axis + 1 :]), v.type.shape[axis]
        assert isinstance(extent, Dim)
        step = node.attrs["strides"][axis] if "strides" in node.attrs else size
        with building_as(node.origin):
            return apply(
                "add", index, apply("first_element", extent=Dim(extent.coef * step, extent.cap, 1, "start"))
            )
