"""Samples of a batch: whether an op computes each sample from the same sample of its operands, or adds up one term for
each sample.

A value that follows the batch has one axis with an extent c*n: c successive elements belong to a sample.
"""

from __future__ import annotations

from .node import Node, Value
from .op_kinds import Iota, Range, Scan, Tile
from .tiles import term_of, tile_of_first
from .types import Dim, Type, planned, varies


class Mixed(Exception):
    """A node mixes samples. The message names its layer, or else its op, and says how."""

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
    """Raise Mixed unless the node computes each sample from the same sample of its operands, or, where the results do
    not follow the batch, adds up terms, each computed from one sample."""
    if any(follows(r) for r in node.results):
        aligned = all(follows(r) for r in node.results) and _is_aligned(node)
    else:
        aligned = _adds_samples(node)
    if not aligned:
        raise Mixed(node, "makes a sample depend on others")


def _is_aligned(node: Node) -> bool:
    """Whether each sample of the results is computed from the same sample of the operands."""
    lower, y = node.op.lower, node.results[0]
    axis = axis_of_samples(y)
    if isinstance(lower, Scan):
        return isinstance(node.attrs["length"], int) and all(
            _stays_aligned(n) for n in node.regions[0].nodes if _reads_samples(n)
        )
    if len({axis_of_samples(r) for r in node.results}) > 1:
        return False
    if isinstance(lower, Iota):
        return planned(y.type.shape[:axis]) == (1,) * axis
    return _is_of_second(node, tile_of_first(node, _second(y)))


def _adds_samples(node: Node) -> bool:
    """Whether the only result, which does not follow the batch, is a sum of terms, each of a sample of the operands."""
    operand, v = next((k, v) for k, v in enumerate(node.operands) if follows(v))
    return len(node.results) == 1 and _is_of_second(node, term_of(node, operand, _second(v)))


def _second(v: Value) -> Range:
    """The elements of the second sample."""
    axis = axis_of_samples(v)
    extent = v.type.shape[axis]
    assert isinstance(extent, Dim)
    return Range(axis, extent.at(1), extent.at(2))


def _is_of_second(node: Node, tile: Tile | None) -> bool:
    """Whether a tile is computed from the second sample of the operands, as the op computes all samples."""
    if tile is None or any(node.attrs[k] != changed for k, changed in tile.changes.items() if k != "shape"):
        return False
    return tile.ranges == {k: _second(v) for k, v in enumerate(node.operands) if follows(v)}


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
    """How often the body of a scan is run. If the length follows the batch, the scan is over micro-batches of at most
    `most` samples, and the result is for the largest batch."""
    if not isinstance(length, Dim):
        return length
    return -(-length.planned // most)
