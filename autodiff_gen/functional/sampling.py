"""Images sampled at computed positions, as in spatial transformer networks (Jaderberg et al. 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.node import Value
from .arguments import TensorLike, as_value, list_of, shape_error
from .composites import remainder
from .elementwise import abs, clamp, detach, floor, ge, le, logical_and, round, to, where
from .indexing import gather
from .products import matmul
from .resampling import CUBIC, LINEAR
from .shapes import broadcast_to, flatten, reshape, transpose, unsqueeze
from .slicing import whole

__all__ = ["affine_grid", "grid_sample"]


def affine_grid(theta: TensorLike, size: Sequence[int], align_corners: bool = False) -> Value:
    """The grid [N, H, W, 2] for grid_sample: the products of the matrices theta [N, 2, 3] and the positions (x, y, 1)
    of the pixels of an image of size (N, C, H, W), x and y from -1 to 1. Of `size`, only H and W are read."""
    t, name = as_value(theta), "affine_grid"
    sizes = list_of(name, t, "size", size)
    if t.ndim != 3 or t.shape[1:] != (2, 3) or len(sizes) != 4:
        raise shape_error(name, [t], "needs theta [N, 2, 3] and size (N, C, H, W)")
    height, width = (whole(name, t, "size", d) for d in sizes[2:])
    if min(height, width) < 1:
        raise shape_error(name, [t], f"size={tuple(size)} has no pixels")
    ys, xs = (_positions(extent, align_corners) for extent in (height, width))
    x, y = np.meshgrid(xs, ys)
    base = np.stack([x, y, np.ones_like(x)], -1).reshape(height * width, 3)
    return reshape(matmul(as_value(base), transpose(t, 1, 2)), (t.shape[0], height, width, 2))


def _positions(extent: int, align_corners: bool) -> Any:
    """The positions of the centres of pixels."""
    if align_corners:
        return np.linspace(-1.0, 1.0, extent) if extent > 1 else np.zeros(1)
    return (2.0 * np.arange(extent) + 1.0) / extent - 1.0


def grid_sample(
    input: TensorLike,
    grid: TensorLike,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> Value:
    """Images [N, C, H, W] at the positions of a grid [N, Ho, Wo, 2]: [N, C, Ho, Wo]. A position is (x, y), with -1 and
    1 at the borders of the image.

    mode: "bilinear", "nearest" or "bicubic". padding_mode: values outside of the image are "zeros", its "border", or
    its "reflection". align_corners: -1 and 1 are the centres of the pixels at the corners.
    """
    image, g, name = as_value(input), as_value(grid), "grid_sample"
    if image.ndim != 4 or g.ndim != 4 or g.shape[3] != 2 or g.shape[0] != image.shape[0]:
        raise shape_error(name, [image, g], "needs images [N, C, H, W] and a grid [N, Ho, Wo, 2]")
    if mode not in ("bilinear", "nearest", "bicubic") or padding_mode not in (
        "zeros",
        "border",
        "reflection",
    ):
        known = "known: 'bilinear', 'nearest', 'bicubic', and 'zeros', 'border', 'reflection'"
        raise shape_error(name, [image, g], f"mode={mode!r}, padding_mode={padding_mode!r}; {known}")
    n, channels, height, width = image.shape
    places = (n, g.shape[1], g.shape[2])
    pixels = flatten(image, 2)

    def inside(at: Value, extent: Any) -> Value:
        """The position in the image whose value padding shows at a position outside."""
        if padding_mode == "zeros":
            return at
        if padding_mode == "reflection":
            first, span = (0.0, extent - 1.0) if align_corners else (-0.5, float(extent))
            at = first + span - abs(remainder(at - first, 2.0 * span) - span) if span else at * 0.0
        return clamp(at, 0.0, extent - 1.0)

    def position(axis: int, extent: Any) -> Value:
        """The position in pixels."""
        at = g[:, :, :, axis] + 1.0
        at = at * (0.5 * (extent - 1)) if align_corners else at * (0.5 * extent) - 0.5
        return at if mode == "bicubic" else inside(at, extent)

    def nearby(at: Value, extent: Any) -> list[tuple[Value, Value | None]]:
        """The positions of the pixels that contribute along an axis, and their weights (None: 1)."""
        if mode == "nearest":
            return [(detach(round(at)), None)]
        first = detach(floor(at))
        taps = CUBIC if mode == "bicubic" else LINEAR
        return [
            (inside(first + float(k), extent) if mode == "bicubic" else first + float(k), weight(at - first))
            for k, weight in taps
        ]

    def shown(y: Value, x: Value) -> Value:
        """The pixels [N, C, Ho, Wo] at whole positions."""
        row, column = (to(clamp(at, 0.0, extent - 1.0), "s32") for at, extent in ((y, height), (x, width)))
        index = reshape(row * width + column, (n, 1, places[1] * places[2]))
        found = gather(pixels, 2, broadcast_to(index, (n, channels, places[1] * places[2])))
        found = reshape(found, (n, channels, *places[1:]))
        if padding_mode != "zeros":
            return found
        within = [logical_and(ge(at, 0.0), le(at, extent - 1.0)) for at, extent in ((y, height), (x, width))]
        return where(unsqueeze(logical_and(*within), 1), found, 0.0)

    total: Value | None = None
    for y, below in nearby(position(1, height), height):
        for x, right in nearby(position(0, width), width):
            term = shown(y, x)
            if below is not None and right is not None:
                term = term * unsqueeze(below * right, 1)
            total = term if total is None else total + term
    assert total is not None
    return total
