"""Crop propagation: where a slice alone is read of what a kernel computes, along an axis and without gaps, the kernel
computes that part.

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
result in vain, nor does its gradient, and what follows it joins its kernel.
"""

from __future__ import annotations

from collections.abc import Collection

from ..ir.graph import Graph
from ..ir.node import Node, Value
from ..ir.op_kinds import Call, Range, View, ViewKind
from ..ir.rewrite import rewritten
from ..ir.tiles import computed, tile_of, whole
from ..ir.traits import view_kind
from ..ops.slices import window
from .context import Context


def crop_propagation(graph: Graph, context: Context) -> Graph:
    """See the module."""
    while True:
        cropped = _cropped(graph)
        if cropped is None:
            return graph
        graph = cropped


def _cropped(graph: Graph) -> Graph | None:
    """The graph in which slices are computed as such, each along one axis; None where none can be."""
    windows = [n for n in graph.of(View) if view_kind(n) is ViewKind.WINDOW]
    slices = [n for n in windows if set(n.attrs["steps"]) == {1}]
    if not slices:
        return None
    alone = {v for v, readers in graph.users.items() if len(readers) == 1}.difference(graph.roots)
    crops: dict[Value, Range] = {}
    chosen: dict[Node, int] = {}
    for node in slices:
        for at in _ranges(node):
            found = _needed(node.operands[0], at, alone)
            if found:
                crops.update(found)
                chosen[node] = at.axis
                break
    if not chosen:
        return None

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...]:
        if node in chosen:
            return (_rest(node, operands[0], chosen[node]),)
        tile = tile_of(node, crops[node.results[0]])
        assert tile is not None
        new = computed(node, tile, operands)  # each is read as a whole, or has only the part that is read
        new.origin = node.origin
        return new.results

    return rewritten(graph, rewrite, [*chosen, *(v.node for v in crops)])


def _ranges(node: Node) -> list[Range]:
    """The axes of which a slice has a part."""
    shape, starts, read = node.attrs["shape"], node.attrs["starts"], node.operands[0].type.shape
    return [
        Range(a, start, start + size)
        for a, (size, start, extent) in enumerate(zip(shape, starts, read, strict=True))
        if size != extent and isinstance(size, int) and isinstance(extent, int)
    ]


def _needed(v: Value, at: Range, alone: Collection[Value]) -> dict[Value, Range]:
    """What is computed in part where only a range of v is read, up to the kernels that then compute less of whole
    operands; nothing where there is no such kernel, or where something would be sliced."""
    crops: dict[Value, Range] = {}
    pending, kernels = [(v, at)], 0
    while pending:
        v, at = pending.pop()
        tile = tile_of(v.node, at) if v in alone and v.node.operands else None
        if tile is None:
            return {}
        crops[v] = at
        kernels += isinstance(v.node.op.lower, Call)
        parts = [(v.node.operands[k], r) for k, r in tile.ranges.items()]
        pending += [(u, r) for u, r in parts if r != whole(u, r.axis)]
    return crops if kernels else {}


def _rest(node: Node, v: Value, axis: int) -> Value:
    """What a slice is of a value that has only its part along an axis."""
    starts = tuple(0 if a == axis else s for a, s in enumerate(node.attrs["starts"]))
    shape = node.attrs["shape"]
    return v if v.type.shape == shape else window(v, shape, starts, node.attrs["steps"])
