"""Samples of a batch: whether an op computes each of a sample of its operands, or adds up terms of which each is a
sample's.

A value that follows the batch has one axis with an extent c*n, of which c elements after each other belong to a sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .added_terms import added_to
from .node import Node, Value
from .op_kinds import (
    Assemble,
    Call,
    Contraction,
    Elementwise,
    Iota,
    Pick,
    Range,
    Reduce,
    Scan,
    Tile,
    View,
    ViewKind,
)
from .traits import has_epilogue
from .types import Dim, Type, normalise_axes, planned, product, varies

SECOND = 1, 2  # the range that is the second element of an axis


class Mixed(Exception):
    """What mixes samples: the layer of a node, or else its op; the message says how."""

    def __init__(self, node: Node, how: str) -> None:
        layer = node.origin.scope
        super().__init__(
            f"{f'layer {layer!r}' if layer else f'{node.op.name} of {node.results[0].type}'} {how}"
        )


def follows(v: Value) -> bool:
    """Whether a value has an extent that follows the batch."""
    return varies(v.type.shape)


def axis_of_samples(v: Value) -> int:
    """The axis along which a value that follows the batch has its samples."""
    axes = [k for k, d in enumerate(v.type.shape) if isinstance(d, Dim)]
    if len(axes) != 1:
        raise Mixed(v.node, "has an element for each pair of samples")
    return axes[0]


def check(node: Node) -> None:
    """Raise Mixed unless each sample of what the node computes is computed of the same sample of its operands, or,
    where the results do not follow the batch, is the sum of terms of which each is computed of one sample."""
    if any(follows(r) for r in node.results):
        aligned = all(follows(r) for r in node.results) and _is_aligned(node)
    else:
        aligned = _adds_samples(node)
    if not aligned:
        raise Mixed(node, "makes a sample depend on others")


def _axes(values: Iterable[Value]) -> dict[int, int]:
    """The axes of the samples of those values that follow the batch, by index."""
    return {k: axis_of_samples(v) for k, v in enumerate(values) if follows(v)}


def _is_aligned(node: Node) -> bool:
    """Whether each sample of the results is computed from the same sample of the operands."""
    lower, y = node.op.lower, node.results[0]
    axis, axes = axis_of_samples(y), _axes(node.operands)
    if isinstance(lower, Scan):
        return isinstance(node.attrs["length"], int) and all(
            _stays_aligned(n) for n in node.regions[0].nodes if _reads_samples(n)
        )
    if len({axis_of_samples(r) for r in node.results}) > 1:
        return False
    if isinstance(lower, Elementwise):
        return all(a - node.operands[k].ndim == axis - y.ndim for k, a in axes.items())
    if isinstance(lower, Iota):
        return planned(y.type.shape[:axis]) == (1,) * axis
    if isinstance(lower, View):
        return not axes or _is_aligned_view(node, lower.kind, axis, axes[0])
    if isinstance(lower, Pick):
        picked = lower.axes(node.operands[0].type.shape, node.operands[1].type.shape, node.attrs)
        return all(picked[k][a] == axis for k, a in axes.items())
    if isinstance(lower, Reduce):
        summed = normalise_axes(node.attrs["axes"], node.operands[0].ndim)
        kept = [a for a in range(node.operands[0].ndim) if node.attrs["keepdim"] or a not in summed]
        return axes[0] not in summed and kept[axis] == axes[0]
    if isinstance(lower, Assemble):
        windows = zip(node.attrs["starts"], node.attrs["steps"], strict=True)
        whole = all((start[axis], step[axis]) == (0, 1) for start, step in windows)
        return whole and all(a == axis for a in axes.values()) and _equal(node)
    if isinstance(lower, Contraction):
        from_end = axis - y.ndim
        own = {k: a - node.operands[k].ndim for k, a in axes.items()}
        inner = {0: -1, 1: -2}
        return added_to(node) is None and all(a == from_end and a != inner.get(k) for k, a in own.items())
    if isinstance(lower, Call):
        shapes = [planned(v.type.shape) for v in node.operands]
        return _reads(lower.tile(Range(axis, *SECOND), shapes, node.attrs), axes) and _equal(node)
    return False


def _is_aligned_view(node: Node, kind: ViewKind, axis: int, before: int) -> bool:
    (x,), y = node.operands, node.results[0]
    if kind is ViewKind.PERMUTE:
        return bool(node.attrs["dims"][axis] == before)
    if kind is ViewKind.WINDOW:
        is_whole = node.attrs["starts"][axis] == 0 and node.attrs["steps"][axis] == 1
        return axis == before and bool(is_whole) and _equal(node)
    if kind is ViewKind.WINDOWS:
        return axis == before == 0
    if kind is ViewKind.BROADCAST:
        return bool(axis - y.ndim == before - x.ndim)
    outer = (product(shape) for shape in (x.type.shape[:before], y.type.shape[:axis]))
    return len({*outer}) == 1


def _equal(node: Node) -> bool:
    """Whether all have as many elements of each sample."""
    every = [*node.results, *(v for v in node.operands if follows(v))]
    return len({v.type.shape[axis_of_samples(v)] for v in every}) == 1


def _adds_samples(node: Node) -> bool:
    """Whether the only result, which does not follow the batch, is a sum of terms, each of a sample of the operands."""
    lower, axes = node.op.lower, _axes(node.operands)
    if len(node.results) != 1:
        return False
    if isinstance(lower, Reduce):
        return lower.sums and axes[0] in normalise_axes(node.attrs["axes"], node.operands[0].ndim)
    if isinstance(lower, Contraction):
        own = {k: a - node.operands[k].ndim for k, a in axes.items()}
        return added_to(node) is None and not has_epilogue(node) and own == {0: -1, 1: -2}
    if isinstance(lower, Call) and added_to(node) is None:
        shapes = [planned(v.type.shape) for v in node.operands]
        operand, axis = next(iter(axes.items()))
        return _reads(lower.term_of(operand, Range(axis, *SECOND), shapes, node.attrs), axes)
    return False


def _reads(tile: Tile | None, axes: Mapping[int, int]) -> bool:
    """Whether a tile that is the second element along an axis reads no more than that along these axes of operands."""
    return (
        tile is not None
        and not tile.changes
        and tile.ranges == {k: Range(a, *SECOND) for k, a in axes.items()}
    )


def _reads_samples(node: Node) -> bool:
    return any(map(follows, (*node.operands, *node.results)))


def _stays_aligned(node: Node) -> bool:
    return all(map(follows, node.results)) and _is_aligned(node)


def of_samples(type: Type, most: int) -> Type:
    """The type of a part of a value with at most so many samples."""
    return type.with_shape(tuple(part(d, most) for d in type.shape))


def part(extent: int | Dim, most: int) -> int | Dim:
    """The extent of a part with at most so many samples."""
    if not isinstance(extent, Dim):
        return extent
    return extent.at(1) if most == 1 else Dim(extent.coef, most, extent.power, "count")


def times_of(length: int | Dim, most: int) -> int:
    """How often the body of a scan is run: of one over micro-batches with at most so many samples, for the largest
    batch."""
    if not isinstance(length, Dim):
        return length
    return -(-length.planned // most)
