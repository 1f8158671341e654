"""The graph in which parts of values are computed instead of the whole values."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

from ...ir.build import apply, apply_node
from ...ir.graph import Graph
from ...ir.node import Node, Value
from ...ir.op_kinds import Assemble, Iota, Pick, Range, Scan, Tile, ViewKind
from ...ir.origin import Origin
from ...ir.rewrite import rewritten
from ...ir.tiles import axis_of_result, computed, part_of, slice_of
from ...ir.traits import is_sum, view_kind
from ...ir.types import product
from ...ops.control_flow.scan_builder import shortened
from .cuts import Cut, Part, Picked
from .demand import Demand


def computed_parts(graph: Graph, demand: Demand) -> Graph:
    """The graph that computes the parts that `demand` has found."""
    made: dict[tuple[Value, Part], Value] = {}

    def part_from(old: Value, new: Value, part: Part | None) -> Value:
        """A part of an operand: a part that is already computed, or a slice of a larger part or of the operand."""
        if part is None or (old, part) in made:
            return new if part is None else made[old, part]
        if isinstance(part, Picked):
            return apply("index_select", new, part.index, dim=part.axis)
        for have in demand.parts.get(old, ()):
            if isinstance(have, Range) and have.start <= part.start and part.stop <= have.stop:
                at = replace(part, start=part.start - have.start, stop=part.stop - have.start)
                return part_of(made[old, have], at)
        return part_of(new, part)

    def rewrite(node: Node, operands: tuple[Value, ...]) -> Sequence[Value] | None:
        cuts, parts = demand.cuts[node], demand.parts.get(node.results[-1], ())
        if not parts and (is_sum(node) or isinstance(node.op.lower, Pick)):
            needed = [cut.needs[0][1] for cut in cuts]
            read = [part_from(node.operands[0], operands[0], part) for part in needed]
            return (_sum(node, needed, read),) if is_sum(node) else read
        is_named = not parts or (len(parts) == 1 and isinstance(parts[0], Range))
        results: Sequence[Value] = ()
        for k, cut in enumerate(cuts):
            new = dict(zip(node.operands, operands, strict=True))
            rows = None if all(v in new for v, _ in cut.needs) else operands[0].node
            if rows is not None:
                x, w = rows.operands[0].node.operands[0], rows.operands[1]
                new = dict(zip([v for v, _ in cut.needs], (x, w), strict=True))
            given = tuple([part_from(v, new[v], part) for v, part in cut.needs])
            results = (
                _computed(node, cut, given, is_named) if rows is None else [_of_rows(node, rows, *given)]
            )
            for old, v in zip(node.results, results, strict=True):
                if old in demand.parts:
                    made[old, demand.parts[old][k]] = v
        return results if is_named else None

    return rewritten(graph, rewrite, demand.cuts)


def _computed(node: Node, cut: Cut, operands: tuple[Value, ...], is_named: bool) -> Sequence[Value]:
    """The results of the node for parts of its operands. is_named: the results replace the node and take its name."""
    lower = node.op.lower
    if isinstance(lower, Scan):
        return shortened(node, operands, cut.changes["length"]).results
    if view_kind(node) is ViewKind.WINDOW:
        return (slice_of(operands[0], cut.changes["shape"], cut.changes["starts"], node.attrs["steps"]),)
    if isinstance(lower, Iota):
        return apply_node("places", **cut.changes).results
    is_one = isinstance(lower, Assemble) and operands[0].type.shape == cut.changes["shape"]
    if is_one and {*cut.changes["steps"][0]} == {1}:
        return operands
    made, origin = computed(node, Tile({}, cut.changes), operands), node.origin
    made.origin = origin if is_named else Origin(origin.scope, origin.phase, call=origin.call)
    return made.results


def _of_rows(node: Node, rows: Node, x: Value, w: Value) -> Value:
    """The product of these rows of each sample, with the axes of the node's result."""
    (*lead, columns), inner = node.results[0].type.shape, w.type.shape[0]
    axes = x.type.shape[: len(lead)]
    y = apply("matmul", apply("reshape", x, shape=(product(axes), inner)), w)
    y.node.origin = rows.origin
    return apply("reshape", y, shape=(*axes, columns))


def _sum(node: Node, needed: Sequence[Part | None], parts: Sequence[Value]) -> Value:
    """A sum of a joined value from the sums of its parts: they are added up, or joined along another axis."""
    ranges = [part for part in needed if isinstance(part, Range)]
    axis, shape = ranges[0].axis, node.results[0].type.shape
    sums = [_sum_of(v, node, axis) for v in parts]
    if axis in node.attrs["axes"]:
        return functools.reduce(lambda a, b: apply("add", a, b), sums)
    along = axis_of_result(node, 0, axis)
    starts = tuple([tuple([r.start if a == along else 0 for a in range(len(shape))]) for r in ranges])
    steps = ((1,) * len(shape),) * len(sums)
    return apply("assemble", *sums, shape=shape, starts=starts, steps=steps, fill=0.0)


def _sum_of(part: Value, node: Node, axis: int) -> Value:
    """The sum of a part. A part of extent 1 along its axis need not be summed over this axis."""
    attrs, shape = node.attrs, part.type.shape
    axes = tuple(a for a in attrs["axes"] if a != axis or shape[a] != 1)
    if axes == attrs["axes"]:
        return apply(node.op.name, part, **attrs)
    if axes:
        part = apply(node.op.name, part, **{**attrs, "axes": axes, "keepdim": True})
    return part if attrs["keepdim"] else apply("reshape", part, shape=node.results[0].type.shape)
