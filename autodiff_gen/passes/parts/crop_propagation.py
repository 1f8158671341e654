"""Crop propagation: where of a value no more than a range along an axis is read, and a kernel computes it, that range
alone is computed, and of its operands what that needs.

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

So a causal convolution, which is written as one with padding on both sides whose last results are dropped, computes no
result in vain, nor does its gradient, and what follows it joins its kernel. Of a network whose head reads the last
element of a sequence, or the first token, each layer computes what reaches that: of several readers, the range that
holds what all of them read.

The gradient of a value of which a part is read is as large as the value, with zeros around the gradient of the part: a
trained parameter is read in part where that takes less memory than the whole result and its gradient."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import TypeAlias

from ...ir.build import apply
from ...ir.graph import Graph
from ...ir.node import CONST, STATE, Node, Value
from ...ir.op_kinds import Call, Contraction, Iota, Leaf, Range, Scan, Tile, View, ViewKind
from ...ir.rewrite import rewritten
from ...ir.tiles import computed, indices, part_of, shape_of, tile_of, whole
from ...ir.traits import is_plain_product, view_kind
from ...ir.types import planned_size, product
from ...ops.control_flow.scan_builder import shortened
from ...ops.movement.slices import window
from ..context import Context

Found: TypeAlias = tuple[dict[Value, Range], list[tuple[Value, Range | None]]]
"""What a node computes where ranges alone are read of it, and of which ranges of values; None is the whole."""


def crop_propagation(graph: Graph, context: Context) -> Graph:
    """See the module."""
    while True:
        weights = _weights(graph, context)
        rank = max((n.results[0].ndim for n in graph.of(View) if _is_slice(n)), default=0)
        crops = next((found for axis in range(rank) if (found := _crops(graph, axis, weights))), None)
        if crops is None:
            return graph
        graph = _cropped(graph, crops)


def _weights(graph: Graph, context: Context) -> Set[Value]:
    """Trained parameters, and what is computed of them alone, where the graph is differentiated."""
    if context.training is None or "loss" not in graph.outputs:
        return frozenset()
    trained, found = {state.name for state, _ in context.training.trained}, set[Value]()
    for node in graph.nodes:
        read = [v for v in node.operands if v.node.op is not CONST]
        is_trained = node.op is STATE and node.attrs["state"].name in trained
        if is_trained or (read and found.issuperset(read)):
            found.update(node.results)
    return found


def _crops(graph: Graph, axis: int, weights: Set[Value]) -> dict[Value, Range]:
    """What is computed in part, where slices read parts along an axis: what a kernel or its result is computed of, and
    what is computed of them."""
    crops = _read_alone(graph, axis, graph.users.keys(), weights)
    useful: set[Value] = set()
    for node in graph.nodes:
        v = node.results[-1]
        if v in crops and (_is_by_kernel(node, graph) or not useful.isdisjoint(node.operands)):
            useful.update(node.results)
    return _read_alone(graph, axis, useful, weights) if useful else {}


def _is_by_kernel(node: Node, graph: Graph) -> bool:
    return isinstance(node.op.lower, Call | Contraction | Scan) or _rows(node, graph) is not None


def _read_alone(
    graph: Graph, axis: int, sliced: Collection[Value], weights: Set[Value]
) -> dict[Value, Range]:
    """The only range that is read, for each value of which a range alone is read and can be computed as such. sliced:
    those of which slices count as such readers."""
    read: dict[Value, Range | None] = dict.fromkeys(graph.roots)  # None: the whole
    crops: dict[Value, Range] = {}
    for node in reversed(graph.nodes):
        if read.keys().isdisjoint(node.results):
            continue  # between a product of rows and their view
        is_scan = isinstance(node.op.lower, Scan)
        found = _of_scan(node, read) if is_scan else _of_node(node, read, graph, weights)
        computed_alone, parts = found or ({}, [])
        crops.update(computed_alone)
        for v, part in parts or [(v, _slice(node, axis) if v in sliced else None) for v in node.operands]:
            needed = _hull((part, read[v])) if v in read else part
            read[v] = None if needed is not None and needed == whole(v, needed.axis) else needed
    return crops


def _of_node(
    node: Node, read: Mapping[Value, Range | None], graph: Graph, weights: Set[Value]
) -> Found | None:
    at = _hull(read[v] for v in node.results if v in read)
    if at is None or at == whole(node.results[0], at.axis):
        return None
    parts = _parts(node, at, graph)
    if parts is None or _takes_memory(node, parts, graph, weights):
        return None
    return dict.fromkeys(node.results, at), parts


def _takes_memory(
    node: Node, parts: Sequence[tuple[Value, Range | None]], graph: Graph, weights: Set[Value]
) -> bool:
    """Whether these parts take more memory than the whole result and its gradient with zeros, which are not there: the
    gradient of a trained parameter, or a copy of the rows of an input in several samples, which are to follow each
    other."""
    y, taken = node.results[0], 0
    for v, part in parts:
        if part is None or part == whole(v, part.axis):
            continue
        if v in weights and y not in weights:
            taken += planned_size(v.type.shape)
        is_input = isinstance(v.base.node.op.lower, Leaf) and _rows(node, graph) is not None
        if is_input and planned_size(v.type.shape[: part.axis]) > 1:
            taken += planned_size(shape_of(v.type.shape, part))
    return taken > planned_size(y.type.shape) * (2 if weights else 1)


def _parts(node: Node, at: Range, graph: Graph) -> list[tuple[Value, Range | None]] | None:
    """What a range of the results is computed of."""
    rows = _rows(node, graph)
    if rows is not None and at.axis < node.results[0].ndim - 1:
        return [(rows[0], at), (rows[1], None)]
    tile = _tile(node, at)
    return None if tile is None else [(v, tile.ranges.get(k)) for k, v in enumerate(node.operands)]


def _of_scan(node: Node, read: Mapping[Value, Range | None]) -> Found | None:
    """The iterations up to the last whose results are read."""
    carries, xs, length = (node.attrs[key] for key in ("carries", "xs", "length"))
    stacks = dict(zip(node.results[carries:], node.attrs["axes"], strict=True))
    ranges = [read[v] for v in node.results if v in read]
    known = [r for v, axis in stacks.items() if (r := read.get(v)) is not None and r.axis == axis]
    if len(known) < len(ranges):
        return None
    first, stop = min(r.start for r in known), max(r.stop for r in known)
    start, stop = (first, length) if node.attrs["reverse"] else (0, stop)
    if stop - start == length:
        return None
    elements = range(carries, carries + xs)
    parts = [(v, Range(0, start, stop) if k in elements else None) for k, v in enumerate(node.operands)]
    return {v: Range(axis, start, stop) for v, axis in stacks.items()}, parts


def _rows(node: Node, graph: Graph) -> tuple[Value, Value] | None:
    """x and w of y = reshape(matmul(reshape(x), w)), a product of all rows of x, where x and y have the same axes but
    for columns, and nothing else reads the values between them."""
    if view_kind(node) is not ViewKind.RESHAPE or not is_plain_product(node.operands[0].node):
        return None
    rows, shape = node.operands[0], node.results[0].type.shape
    a, w = rows.node.operands
    between = [rows, a]
    if view_kind(a.node) is not ViewKind.RESHAPE or any(len(graph.users[v]) > 1 for v in between):
        return None
    (x,), lead = a.node.operands, len(shape) - 1
    aligned = x.type.shape[:lead] == shape[:lead] and rows.type.shape[1:] == shape[lead:]
    return (x, w) if aligned and not {*graph.roots}.intersection(between) else None


def _hull(ranges: Iterable[Range | None]) -> Range | None:
    """The range that holds all of these; None, the whole, where they are along several axes."""
    found = list(ranges)
    if None in found or len({r.axis for r in found if r is not None}) != 1:
        return None
    known = [r for r in found if r is not None]
    return replace(known[0], start=min(r.start for r in known), stop=max(r.stop for r in known))


def _is_slice(node: Node) -> bool:
    return view_kind(node) is ViewKind.WINDOW


def _slice(node: Node, axis: int) -> Range | None:
    """What a slice reads along an axis; None where it reads the whole or skips elements, and of other nodes."""
    if not _is_slice(node) or axis >= node.results[0].ndim or abs(node.attrs["steps"][axis]) != 1:
        return None
    size, extent = node.results[0].type.shape[axis], node.operands[0].type.shape[axis]
    if not isinstance(size, int) or not isinstance(extent, int):
        return None
    return _between(node, Range(axis, 0, size))


def _between(node: Node, at: Range) -> Range:
    """The elements that a range of a slice reads, and those between them."""
    start, step = node.attrs["starts"][at.axis], node.attrs["steps"][at.axis]
    ends = sorted((start + at.start * step, start + (at.stop - 1) * step))
    return Range(at.axis, ends[0], ends[1] + 1)


def _tile(node: Node, at: Range) -> Tile | None:
    """As tile_of, also of slices and of indices."""
    if isinstance(node.op.lower, Iota):
        return Tile({})
    return Tile({0: _between(node, at)}) if _is_slice(node) else tile_of(node, at)


def _cropped(graph: Graph, crops: Mapping[Value, Range]) -> Graph:
    """The graph in which these ranges of values are computed."""

    def part(old: Value, new: Value, needed: Range | None) -> Value:
        """The elements of an operand that are needed, of those that there are."""
        if needed is None:
            return new
        first = crops[old].start if old in crops else 0
        return part_of(new, Range(needed.axis, needed.start - first, needed.stop - first))

    def slice_of(node: Node, v: Value) -> Value:
        """A slice of an operand of which there is a part, or a part of the slice."""
        shape, starts, steps = [*node.results[0].type.shape], [*node.attrs["starts"]], node.attrs["steps"]
        at, there = crops.get(node.results[0]), crops.get(node.operands[0])
        if at is not None:
            shape[at.axis] = at.stop - at.start
            starts[at.axis] += at.start * steps[at.axis]
        if there is not None:
            starts[there.axis] -= there.start
        is_whole = [*v.type.shape] == shape and all(
            step == 1 or d == 1 for d, step in zip(shape, steps, strict=True)
        )
        return v if is_whole else window(v, tuple(shape), starts, steps)

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...]:
        if _is_slice(node):
            return (slice_of(node, *operands),)
        at = crops[node.results[-1]]
        if isinstance(node.op.lower, Scan):
            _, parts = _of_scan(node, crops) or ({}, [])
            operands = tuple([part(u, v, needed) for (u, needed), v in zip(parts, operands, strict=True)])
            return shortened(node, operands, at.stop - at.start).results
        if isinstance(node.op.lower, Iota):
            return (indices(node, at),)
        rows, tile = _rows(node, graph), _tile(node, at)
        if rows is not None and at.axis < node.results[0].ndim - 1:
            a, w = operands[0].node.operands
            x = part(rows[0], a.node.operands[0], at)
            shape = shape_of(node.results[0].type.shape, at)
            flat = apply("reshape", x, shape=(product(shape[:-1]), a.type.shape[1]))
            y = apply("matmul", flat, w)
            y.node.origin = operands[0].node.origin
            return (apply("reshape", y, shape=shape),)
        assert tile is not None
        pairs = enumerate(zip(node.operands, operands, strict=True))
        new = computed(node, tile, tuple([part(u, v, tile.ranges.get(k)) for k, (u, v) in pairs]))
        new.origin = node.origin
        return new.results

    slices = [n for n in graph.of(View) if _is_slice(n) and n.operands[0] in crops]
    return rewritten(graph, rewrite, [*slices, *(v.node for v in crops)])
