"""Tiles of ops over windows of images [n, h, w, c]: the rows or columns from which a part of the result is computed,
and the padding around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.op_kinds import Attrs, Range, Tile
from ...ir.types import Shape
from .windows import Pair

ROWS, COLUMNS, CHANNELS = 1, 2, 3


def of_windows(at: Range, x: Shape, kernel: Pair, attrs: Attrs) -> tuple[Range, dict[str, Any]] | None:
    """The rows or columns of x that the windows in a range read, and the padding around them; None if the windows read
    only padding."""
    k = at.axis - ROWS
    stride, dilation, before = attrs["stride"][k], attrs.get("dilation", (1, 1))[k], attrs["padding"][2 * k]
    extent = x[at.axis]
    assert isinstance(extent, int)
    first = at.start * stride - before
    stop = (at.stop - 1) * stride - before + (kernel[k] - 1) * dilation + 1
    part = Range(at.axis, max(first, 0), min(stop, extent))
    if part.start >= part.stop:
        return None
    return part, _padding(attrs, k, part.start - first, stop - part.stop)


def _padding(attrs: Attrs, k: int, before: int, after: int) -> dict[str, Any]:
    padding = list(attrs["padding"])
    padding[2 * k : 2 * k + 2] = before, after
    return {"padding": tuple(padding)}


def of_gradient(at: Range, dy: Shape, kernel: Pair, attrs: Attrs) -> tuple[Range, dict[str, Any]] | None:
    """The rows or columns of dy from which a range of dx is computed, with the size of the range and the padding; None
    if no window reads the range."""
    k = at.axis - ROWS
    stride, dilation, before = attrs["stride"][k], attrs["dilation"][k], attrs["padding"][2 * k]
    extent = dy[at.axis]
    assert isinstance(extent, int)
    reach = (kernel[k] - 1) * dilation
    start = min(-((reach - at.start - before) // stride), (at.start + before) // stride)
    part = Range(at.axis, max(start, 0), min((at.stop - 1 + before) // stride + 1, extent))
    if part.start >= part.stop:
        return None
    size = list(attrs["size"])
    size[k] = at.stop - at.start
    inside = at.start + before - part.start * stride
    overhang = (part.stop - part.start - 1) * stride - inside + reach + 1 - size[k]
    return part, {"size": tuple(size), **_padding(attrs, k, inside, max(overhang, 0))}


def of_image(at: Range, shapes: Sequence[Shape], attrs: Attrs) -> Tile | None:
    """The tile of a pooling op with one operand and the attribute kernel."""
    if at.axis not in (ROWS, COLUMNS):
        return Tile({0: at})
    if attrs.get("ceil_mode"):
        return None
    found = of_windows(at, shapes[0], attrs["kernel"], attrs)
    return None if found is None else Tile({0: found[0]}, found[1])


def of_images(at: Range, shapes: Sequence[Shape], attrs: Attrs) -> Tile | None:
    """The tile of images or channels, of an op that computes each image and each channel of the result from the same
    image and channel of the operands."""
    return Tile(dict.fromkeys(range(len(shapes)), at)) if at.axis not in (ROWS, COLUMNS) else None
