"""Sum propagation: where nothing of a joined value is read but sums of it and of elementwise functions of it, these are
computed of the parts, so that the whole, such as the outputs of several branches, is never stored.

    entry f(a: f32[1,4], b: f32[1,4], w: f32[2,1])
      %0: f32[2,4] = assemble(a, b, shape=(2, 4), starts=((0, 0), (1, 0)), steps=((1, 1), (1, 1)), fill=0.0)
      %1: f32[2,4] = mul(%0, w)
      %2: f32[4] = sum(%1, axes=(0,), keepdim=False)
      y <- %2
    ->
    entry f(a: f32[1,4], b: f32[1,4], w: f32[2,1])
      %0: f32[1,1] = slice(w, shape=(1, 1), starts=(0, 0), steps=(1, 1))
      %1: f32[1,4] = mul(a, %0)
      %2: f32[4] = reshape(%1, shape=(4,))
      %3: f32[1,1] = slice(w, shape=(1, 1), starts=(1, 0), steps=(1, 1))
      %4: f32[1,4] = mul(b, %3)
      %5: f32[4] = reshape(%4, shape=(4,))
      %6: f32[4] = add(%2, %5)
      y <- %6

A sum over other axes than the axis of the parts is joined from the sums of the parts.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...ir.build import apply
from ...ir.graph import Graph
from ...ir.node import Node, Value, inferred
from ...ir.op_kinds import Assemble, Elementwise, View, ViewKind
from ...ir.origin import Origin
from ...ir.rewrite import rewritten
from ...ir.traits import is_sum, view_kind
from ...ir.types import Shape, f32
from ...ops.movement.slices import window
from ..context import Context
from .slice_propagation import MOST_PARTS


@dataclass(frozen=True)
class _Division:
    """Into which parts a value is divided: along which axis, and the first and the last index of each, plus one."""

    axis: int
    bounds: tuple[tuple[int, int], ...]

    def shape(self, whole: Shape, k: int) -> Shape:
        first, end = self.bounds[k]
        return (*whole[: self.axis], end - first, *whole[self.axis + 1 :])

    def starts(self, whole: Shape, k: int) -> tuple[int, ...]:
        return tuple(self.bounds[k][0] if axis == self.axis else 0 for axis in range(len(whole)))

    def part_of(self, v: Value, k: int) -> Value:
        """Part k of a value, cut from it."""
        shape = v.type.shape
        return window(v, self.shape(shape, k), self.starts(shape, k), (1,) * len(shape))

    def part_read(self, node: Node) -> int | None:
        """Which part a window of the whole is; None if it is none."""
        whole, at = node.operands[0].type.shape, (node.results[0].type.shape, node.attrs["starts"])
        parts = (k for k in range(len(self.bounds)) if (self.shape(whole, k), self.starts(whole, k)) == at)
        return next(parts, None) if set(node.attrs["steps"]) == {1} else None


def sum_propagation(graph: Graph, context: Context) -> Graph:
    """See the module."""
    divided: dict[Value, _Division] = {}
    for node in graph.of(Assemble):
        divided |= _read_by_sums_alone(node, graph, divided) or {}
    if not divided:
        return graph
    parts: dict[Value, list[Value]] = {}

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...] | None:
        result = node.results[0]
        if isinstance(node.op.lower, Assemble) and result in divided:
            parts[result] = list(operands)
            return None
        source = next(v for v in node.operands if v in divided)
        division = divided[source]
        if view_kind(node) is ViewKind.WINDOW:
            k = division.part_read(node)
            assert k is not None, "another window is read than the window of a part"
            return (parts[source][k],)
        if is_sum(node):
            return (_sum_of_all(node, division, [_sum_of(v, node, division.axis) for v in parts[source]]),)
        parts[result] = [_part(node, operands, k, divided, parts) for k in range(len(division.bounds))]
        return None

    readers = (n for v in divided for n in graph.users.get(v, ()))
    return rewritten(graph, rewrite, [*(v.node for v in divided), *readers])


def _read_by_sums_alone(
    node: Node, graph: Graph, known: Mapping[Value, _Division]
) -> dict[Value, _Division] | None:
    """An assembled value and all that is computed of it elementwise, with how they are divided, if nothing else is read
    of them than sums and parts."""
    division = _division(node)
    if division is None:
        return None
    roots, has_sums = set(graph.roots), False
    found, pending = {node.results[0]: division}, [node.results[0]]
    while pending:
        v = pending.pop()
        if v in roots:
            return None
        for reader in graph.users.get(v, ()):
            if is_sum(reader) and reader.results[0].type.dtype == f32:
                has_sums = True
                continue
            if view_kind(reader) is ViewKind.WINDOW:
                if found[v].part_read(reader) is None:
                    return None
                continue
            axis = _axis_of_result(reader, v, found[v].axis)
            if axis is None:
                return None
            y, at = reader.results[0], replace(division, axis=axis)
            if found.get(y, known.get(y, at)) != at:
                return None
            if y not in found:
                found[y] = at
                pending.append(y)
    return found if has_sums else None


def _division(node: Node) -> _Division | None:
    """How an assembled value is divided; None where its parts are not whole but for one axis, or do not fill it."""
    shape, starts = node.results[0].type.shape, node.attrs["starts"]
    axes = [axis for axis in range(len(shape)) if len({start[axis] for start in starts}) > 1]
    if len(axes) != 1 or len(starts) > MOST_PARTS or any(set(step) != {1} for step in node.attrs["steps"]):
        return None
    (axis,) = axes
    sizes = [v.type.shape[axis] for v in node.operands]
    bounds = tuple((start[axis], start[axis] + size) for start, size in zip(starts, sizes, strict=True))
    found = _Division(axis, bounds)
    whole = [found.shape(shape, k) == v.type.shape for k, v in enumerate(node.operands)]
    if not all(whole) or sum(sizes) != shape[axis] or _are_of_one_value(node):
        return None
    return found


def _are_of_one_value(node: Node) -> bool:
    """Whether loops compute all parts of a value as large as the whole, which takes its memory."""
    read = dict.fromkeys(v.base for v in node.operands)
    for v in (pending := [*read]):
        if isinstance(v.node.op.lower, Elementwise):
            new = {
                u.base: None for u in v.node.operands if u.type.shape == v.type.shape and u.base not in read
            }
            read |= new
            pending += new
    sources = [v for v in read if not isinstance(v.node.op.lower, Elementwise)]
    return len(sources) == 1 and sources[0].type.bytes >= node.results[0].type.bytes


def _axis_of_result(node: Node, v: Value, axis: int) -> int | None:
    """The axis of the result of an elementwise op, or of a view, that is the axis of an operand; None where there is
    none, or it has not the same extent."""
    before, after = v.type.shape, node.results[0].type.shape
    if isinstance(node.op.lower, Elementwise):
        found = axis + len(after) - len(before)
    elif isinstance(node.op.lower, View) and view_kind(node) is not ViewKind.WINDOWS:
        axes = node.op.lower.dims(before, after, node.attrs) or ()
        if axis not in axes:
            return None
        found = axes.index(axis)
    else:
        return None
    return found if after[found] == before[axis] else None


def _part(
    node: Node,
    operands: tuple[Value, ...],
    k: int,
    divided: Mapping[Value, _Division],
    parts: Mapping[Value, list[Value]],
) -> Value:
    """The node, computed of the k-th parts of its operands."""
    result, attrs, cut = node.results[0], node.attrs, []
    for old, new in zip(node.operands, operands, strict=True):
        if old in divided:
            cut.append(parts[old][k])
            continue
        at = divided[result]
        axis = at.axis - len(result.type.shape) + len(new.type.shape)
        repeats = axis < 0 or new.type.shape[axis] == 1
        cut.append(new if repeats else replace(at, axis=axis).part_of(new, k))
    if "shape" in attrs:
        attrs = {**attrs, "shape": divided[result].shape(result.type.shape, k)}
    types = inferred(node.op, [v.type for v in cut], attrs)
    origin = Origin(node.origin.scope, node.origin.phase)
    return Node(node.op, tuple(cut), attrs, types, origin=origin).results[0]


def _sum_of(part: Value, node: Node, axis: int) -> Value:
    """A sum of a part of the operand; of a part with one index along its axis it need not be taken over that."""
    attrs, shape = node.attrs, part.type.shape
    axes = tuple(a for a in attrs["axes"] if a != axis or shape[a] != 1)
    if axes == attrs["axes"]:
        return apply(node.op.name, part, **attrs)
    if axes:
        part = apply(node.op.name, part, **{**attrs, "axes": axes, "keepdim": True})
    return part if attrs["keepdim"] else apply("reshape", part, shape=node.results[0].type.shape)


def _sum_of_all(node: Node, division: _Division, sums: list[Value]) -> Value:
    """A sum of a divided value, of the sums of its parts."""
    axes, shape = node.attrs["axes"], node.results[0].type.shape
    if division.axis in axes:
        return functools.reduce(lambda a, b: apply("add", a, b), sums)
    dropped = 0 if node.attrs["keepdim"] else sum(axis < division.axis for axis in axes)
    at = replace(division, axis=division.axis - dropped)
    starts = tuple(at.starts(shape, k) for k in range(len(sums)))
    steps = ((1,) * len(shape),) * len(sums)
    return apply("assemble", *sums, shape=shape, starts=starts, steps=steps, fill=0.0)
