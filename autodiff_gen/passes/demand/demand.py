"""Demand: the parts of each value along an axis that its readers need, found in one pass from the roots of a graph to
its leaves.

Slices and selections read a part of a value. Sums of joined values can be computed from the parts, and kernels that pad
an image need no border that the image has. An op whose results are read in parts needs parts of its operands."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import replace

from ...errors import ShapeError
from ...ir.graph import Graph
from ...ir.node import Node, Value
from ...ir.op_kinds import (
    Assemble,
    Contraction,
    Elementwise,
    KernelOp,
    Leaf,
    Pick,
    Range,
    Scan,
    Tile,
    View,
    ViewKind,
)
from ...ir.origin import is_after_loss
from ...ir.tiles import computed, part_of, shape_of, whole
from ...ir.traits import is_sum, view_kind
from ...ir.types import f32, planned_size
from .cuts import Cut, Part, Picked, cut_of, iterations, picked, rows_of
from .joined import MOST_PARTS, Joined, joined_values


class Demand:
    """The parts of values that are needed. parts: the parts that replace a value. cuts: for each node, the parts of its
    operands from which it computes each of its parts; also for nodes that compute the whole from such parts.

    separate: a value may have several parts, which also pay if loops need not store the whole. Otherwise a value has
    one part that holds all elements that are read, if a kernel then has less work or needs no border. weights: trained
    parameters whose gradients are not computed yet, and the values that are computed only from them."""

    def __init__(self, graph: Graph, axis: int, separate: bool, weights: Set[Value]) -> None:
        self._graph, self._axis, self._separate, self._weights = graph, axis, separate, weights
        self._joined = joined_values(graph, axis)
        self._find(graph.users.keys())
        if self.parts:
            useful = self._useful()
            self._joined = {v: joined for v, joined in self._joined.items() if joined.of in useful}
            self._find(useful)

    def _find(self, counted: Collection[Value]) -> None:
        """Find `parts` and `cuts`. counted: the values whose readers may need only parts."""
        self.parts: dict[Value, tuple[Part, ...]] = {}
        self.cuts: dict[Node, list[Cut]] = {}
        self._counted, self._sliced = counted, set[Value]()
        read: dict[Value, list[Part | None]] = {v: [None] for v in self._graph.roots}
        for node in reversed(self._graph.nodes):
            if read.keys().isdisjoint(node.results):
                continue  # values inside a product of rows, or values that only other parts replace
            cuts = self._in_parts(node, read) or self._needed(node)
            if cuts:
                self.cuts[node] = cuts
            is_sliced = isinstance(node.op.lower, Elementwise) and node.results[0] in self._sliced
            is_sliced = is_sliced or view_kind(node) is ViewKind.WINDOW
            for v, part in [need for cut in cuts for need in cut.needs] if cuts else _all(node):
                read.setdefault(v, []).append(part)
                if is_sliced and part is not None:
                    self._sliced.add(v)

    def _useful(self) -> set[Value]:
        """The values with parts that save something, and values with parts that are computed from these."""
        found: set[Value] = set()
        for node in self._graph.nodes:
            if node.results[-1] in self.parts and (self._saves(node) or not found.isdisjoint(node.operands)):
                found.update(node.results)
        return found

    def _saves(self, node: Node) -> bool:
        """Whether a kernel has less work, loops do not store a whole, or nothing is joined along the axis any more."""
        lower = node.op.lower
        if isinstance(lower, Assemble):
            return all(len(cut.needs) == 1 and _is_whole(*cut.needs[0]) for cut in self.cuts[node])
        if isinstance(lower, Elementwise):
            return self._separate and node.results[0] in self._sliced
        return isinstance(lower, KernelOp | Contraction | Scan) or rows_of(node, self._graph) is not None

    def _in_parts(self, node: Node, read: Mapping[Value, Sequence[Part | None]]) -> list[Cut]:
        """The cuts from which the node computes the needed parts of its results; none where it computes the whole."""
        wanted = [(v, part) for v in node.results for part in read.get(v, ())]
        is_scan = isinstance(node.op.lower, Scan)
        same = () if is_scan else self._merged(node, [part for _, part in wanted])
        found = iterations(node, wanted) if is_scan else dict.fromkeys(node.results, same)
        parts = found.get(node.results[-1], ())
        cuts = [cut for part in parts if (cut := cut_of(node, part, self._graph)) is not None]
        if len(cuts) < len(parts) or not self._is_worth(node, parts, cuts):
            return []
        self.parts |= found
        return cuts

    def _merged(self, node: Node, read: Sequence[Part | None]) -> tuple[Part, ...]:
        """The parts that hold all elements that are read; none where only the whole does."""
        known = [part for part in read if isinstance(part, Range)]
        if len(known) < len(read):
            return (read[0],) if isinstance(read[0], Picked) and len({*read}) == 1 else ()
        if len({r.axis for r in known}) > 1:
            return ()
        apart = self._separate and isinstance(node.op.lower, Elementwise | View | Assemble)
        parts: list[Range] = []
        for r in sorted(known, key=lambda r: r.start):
            joins = parts and (not apart or r.start < parts[-1].stop)
            parts.append(replace(last := parts.pop(), stop=max(last.stop, r.stop)) if joins else r)
        if len(parts) > MOST_PARTS:
            parts = [replace(parts[0], stop=parts[-1].stop)]
        return () if _is_whole(node.results[0], parts[0]) else tuple(parts)

    def _is_worth(self, node: Node, parts: Sequence[Part], cuts: Sequence[Cut]) -> bool:
        """Whether the parts are computed. One part is computed unless that takes memory; several parts only if the
        value is counted. Parts that make up a whole elementwise value are not computed if only products read it, since
        their kernels read a part of a matrix in place. Nor are they if the whole reuses the memory of an operand in the
        backward pass."""
        y = node.results[0]
        if len(parts) < 2:
            return bool(parts) and not self._takes_memory(node, cuts[0])
        size = sum(part.stop - part.start for part in parts if isinstance(part, Range))
        is_all = isinstance(node.op.lower, Elementwise) and size == y.type.shape[parts[0].axis]
        if not is_all or y in self._joined:
            return y in self._counted
        same = [v for v in node.operands if v.type == y.type and not isinstance(v.base.node.op.lower, Leaf)]
        is_for_products = all(self._is_for_products(n) for n in self._graph.users[y])
        return y in self._counted and not is_for_products and not (same and is_after_loss(node.origin))

    def _is_for_products(self, node: Node) -> bool:
        """Whether only products read a view."""
        readers = [n for v in node.results for n in self._graph.users.get(v, ())]
        return isinstance(node.op.lower, View) and all(
            isinstance(n.op.lower, Contraction) or self._is_for_products(n) for n in readers
        )

    def _takes_memory(self, node: Node, cut: Cut) -> bool:
        """Whether these parts take more memory than they save: the whole result and its gradient with zeros. They take
        the whole gradient of a trained parameter, or a copy of the rows of an input in several samples, since a product
        needs adjacent rows."""
        y, taken = node.results[0], 0
        for v, part in cut.needs:
            if not isinstance(part, Range) or _is_whole(v, part):
                continue
            if v in self._weights and y not in self._weights:
                taken += planned_size(v.type.shape)
            is_input = isinstance(v.base.node.op.lower, Leaf) and rows_of(node, self._graph) is not None
            if is_input and planned_size(v.type.shape[: part.axis]) > 1:
                taken += planned_size(shape_of(v.type.shape, part))
        return taken > planned_size(y.type.shape) * (2 if self._weights else 1)

    def _needed(self, node: Node) -> list[Cut]:
        """The cuts of a node that is computed as a whole; none where it needs the whole of its operands."""
        if not node.operands or node.operands[0] not in self._counted:
            return []
        v, lower, axis, found = node.operands[0], node.op.lower, self._axis, None
        joined = self._joined.get(v)
        if view_kind(node) is ViewKind.WINDOW:
            is_in_order = axis < v.ndim and abs(node.attrs["steps"][axis]) == 1
            if is_in_order and all(isinstance(u.type.shape[axis], int) for u in (v, node.results[0])):
                found = cut_of(node, whole(node.results[0], axis), self._graph)
        elif isinstance(lower, Pick):
            found = picked(node) if self._separate else None
        elif joined is not None and is_sum(node) and self._separate and v.type.dtype == f32:
            return [] if joined.fill else [Cut([(v, at)]) for at in joined.ranges]
        elif joined is not None and isinstance(lower, KernelOp):
            found = _without_border(node, joined)
        return [] if found is None else [found]


def _all(node: Node) -> list[tuple[Value, Part | None]]:
    return [(v, None) for v in node.operands]


def _is_whole(v: Value, part: Part | None) -> bool:
    return part is None or (isinstance(part, Range) and part == whole(v, part.axis))


def _without_border(node: Node, joined: Joined) -> Cut | None:
    """The cut of a call that reads an image with a border along an axis, and can pad the image itself instead."""
    (image, *rest), (at, *more) = node.operands, joined.ranges
    windows = node.op.windows([v.type.shape for v in node.operands], node.attrs)
    number = None if windows is None else windows.border
    if number is None or more or joined.fill != number or at.axis not in (1, 2):
        return None
    padding, before = [*node.attrs["padding"]], 2 * at.axis - 2
    padding[before] += at.start
    padding[before + 1] += whole(image, at.axis).stop - at.stop
    changes = {"padding": tuple(padding)}
    try:
        types = [v.type for v in computed(node, Tile({}, changes), (part_of(image, at), *rest)).results]
    except ShapeError:  # more padding than the op may have
        return None
    is_same = types == [v.type for v in node.results]
    return Cut([(image, at), *_all(node)[1:]], changes) if is_same else None
