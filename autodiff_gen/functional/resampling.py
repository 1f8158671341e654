"""Images of another size: interpolation, and rearrangements between channels and pixels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir.build import apply, broadcast_to
from ..ir.node import Value
from ..ir.types import plain
from .arguments import TensorLike, as_value, shape_error, torch_lacks
from .indexing import index_select
from .joining import repeat_interleave
from .pooling import adaptive_avg_pool1d, adaptive_avg_pool2d
from .shapes import permute, reshape
from .slicing import whole
from .windows import images

__all__ = ["channel_shuffle", "interpolate", "pixel_shuffle", "pixel_unshuffle"]

# The elements that contribute to an element of the result at a position: their offsets from the element at
# floor(position), and their weights as functions of t = position - floor(position).
_Taps = Sequence[tuple[int, Callable[[Any], Any]]]
LINEAR: _Taps = ((0, lambda t: 1.0 - t), (1, lambda t: t))


def _near(t: Any) -> Any:
    """The cubic weight at a distance t of at most 1: Keys 1981, with a = -0.75 as in PyTorch."""
    return (1.25 * t - 2.25) * t * t + 1.0


def _far(t: Any) -> Any:
    """The cubic weight at a distance t from 1 to 2."""
    return ((-0.75 * t + 3.75) * t - 6.0) * t + 3.0


CUBIC: _Taps = (
    (-1, lambda t: _far(t + 1.0)),
    (0, _near),
    (1, lambda t: _near(1.0 - t)),
    (2, lambda t: _far(2.0 - t)),
)
_AXES = {  # mode -> the numbers of spatial axes that it supports
    "nearest": (1, 2),
    "nearest-exact": (1, 2),
    "area": (1, 2),
    "linear": (1,),
    "bilinear": (2,),
    "bicubic": (2,),
}


@torch_lacks(antialias=False)
def interpolate(
    input: TensorLike,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> Value:
    """Images [N, C, L] or [N, C, H, W] resampled to `size` pixels, or to `scale_factor` times as many (rounded down).

    Modes: "nearest", "nearest-exact", "area" (adaptive_avg_pool), "linear" for [N, C, L], "bilinear" and "bicubic" for
    [N, C, H, W]. align_corners: the centres of the corner pixels coincide, not the corners of the images.
    recompute_scale_factor: positions follow from the sizes, not from scale_factor.
    """
    x, name = as_value(input), "interpolate"
    axes = x.ndim - 2
    if axes not in _AXES.get(mode, ()):
        known = ", ".join(f'"{m}"' for m, of in _AXES.items() if axes in of)
        rule = f"mode={mode!r}; known: {known}" if known else "the input must be [N, C, L] or [N, C, H, W]"
        raise shape_error(name, [x], rule)
    if align_corners is not None and mode not in ("linear", "bilinear", "bicubic"):
        raise shape_error(name, [x], f"align_corners is not for mode={mode!r}")
    given = images(name, x, axes).size[2 - axes :]
    if (size is None) == (scale_factor is None):
        raise shape_error(name, [x], "give either size or scale_factor")
    if size is not None:
        sizes = [whole(name, x, "size", s) for s in _each(x, "size", size, axes)]
        steps: list[float | None] = [None] * axes
    else:
        factors = [_factor(x, f) for f in _each(x, "scale_factor", scale_factor, axes)]
        sizes = [math.floor(d * f) for d, f in zip(given, factors, strict=True)]
        steps = [None if recompute_scale_factor else 1.0 / f for f in factors]
    if min(sizes) < 1:
        raise shape_error(name, [x], f"the result would have the size {sizes}")
    if mode == "area":
        return (adaptive_avg_pool1d if axes == 1 else adaptive_avg_pool2d)(x, tuple(sizes))
    for axis, (d, new, step) in enumerate(zip(given, sizes, steps, strict=True), 2):
        if new == d and mode in ("nearest", "linear", "bilinear"):
            continue  # as in PyTorch, also if the factor is not 1
        if mode.startswith("nearest"):
            # As in PyTorch, a doubled image repeats each pixel, also if the factor is not exactly 2.
            step = None if new == 2 * d and mode == "nearest" else step
            x = _nearest(x, axis, d, new, step, 0.5 if mode == "nearest-exact" else 0.0)
        else:
            taps = CUBIC if mode == "bicubic" else LINEAR
            x = _weighted(x, axis, _positions(d, new, step, bool(align_corners), mode), taps)
    return x


def _each(x: Value, what: str, given: Any, axes: int) -> Sequence[Any]:
    """One number for each axis."""
    numbers = tuple(given) if isinstance(given, tuple | list) else (given,) * axes
    if len(numbers) != axes:
        raise shape_error("interpolate", [x], f"{what}={given!r} must be a number, or {axes} of them")
    return numbers


def _factor(x: Value, factor: Any) -> float:
    factor = plain(factor)
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor < math.inf:
        raise shape_error("interpolate", [x], f"scale_factor={factor!r} must be a number greater than 0")
    return float(factor)


def _nearest(x: Value, axis: int, size: int, new: int, step: float | None, offset: float) -> Value:
    if new % size == 0 and (step is None or step * new == size):
        return repeat_interleave(x, new // size, axis) if new > size else x
    step32 = np.float32(size / new if step is None else step)  # PyTorch's arithmetic
    index = np.floor((np.arange(new, dtype=np.float32) + np.float32(offset)) * step32)
    return index_select(x, axis, np.minimum(index, size - 1).astype(np.int32))


def _positions(size: int, new: int, step: float | None, aligned: bool, mode: str) -> Any:
    """The positions of the new elements, in units of the old elements."""
    if aligned:
        return np.arange(new) * ((size - 1) / (new - 1) if new > 1 else 0.0)
    positions = (np.arange(new) + 0.5) * (size / new if step is None else step) - 0.5
    return positions if mode == "bicubic" else np.maximum(positions, 0.0)


def _weighted(x: Value, axis: int, positions: Any, taps: _Taps) -> Value:
    """The weighted sum of the taps' elements; an element outside is replaced by the border element."""
    size = x.shape[axis]
    assert isinstance(size, int)
    if size == 1:
        return broadcast_to(x, (*x.shape[:axis], len(positions), *x.shape[axis + 1 :]))
    first = np.floor(positions)
    index = np.stack([np.clip(first + offset, 0, size - 1) for offset, _ in taps], 1).astype(np.int32)
    weights = np.stack([np.asarray(weight(positions - first), np.float32) for _, weight in taps], 1)
    counts = weights.any(0)
    return apply("resample", x, axes=(axis,), index=index[:, counts], weights=weights[:, counts])


def _grouped(name: str, x: Value, factor: Any, what: str) -> tuple[int, list[Any]]:
    """The factor as an int, and the extents of x [..., C, H, W]."""
    k = whole(name, x, what, factor)
    if x.ndim < 3 or k < 1 or not all(isinstance(d, int) for d in x.shape[-3:]):
        raise shape_error(name, [x], f"the input must be [..., C, H, W], and {what}={factor!r} at least 1")
    return k, list(x.shape)


def pixel_shuffle(input: TensorLike, upscale_factor: int) -> Value:
    """[..., C r^2, H, W] -> [..., C, H r, W r], r the upscale_factor. Shi et al. 2016."""
    x, name = as_value(input), "pixel_shuffle"
    r, (*n, c, h, w) = _grouped(name, x, upscale_factor, "upscale_factor")
    if c % (r * r):
        raise shape_error(name, [x], f"{c} channels cannot be divided by upscale_factor^2 = {r * r}")
    k = len(n)
    y = reshape(x, (*n, c // (r * r), r, r, h, w))
    y = permute(y, (*range(k), k, k + 3, k + 1, k + 4, k + 2))
    return reshape(y, (*n, c // (r * r), h * r, w * r))


def pixel_unshuffle(input: TensorLike, downscale_factor: int) -> Value:
    """[..., C, H r, W r] -> [..., C r^2, H, W], r the downscale_factor: the inverse of pixel_shuffle."""
    x, name = as_value(input), "pixel_unshuffle"
    r, (*n, c, h, w) = _grouped(name, x, downscale_factor, "downscale_factor")
    if h % r or w % r:
        raise shape_error(name, [x], f"{h} x {w} pixels cannot be divided by downscale_factor={r}")
    k = len(n)
    y = reshape(x, (*n, c, h // r, r, w // r, r))
    y = permute(y, (*range(k), k, k + 2, k + 4, k + 1, k + 3))
    return reshape(y, (*n, c * r * r, h // r, w // r))


def channel_shuffle(input: TensorLike, groups: int) -> Value:
    """The channels of [N, C, ...], divided into `groups` groups, in another order: the first channel of each group,
    then the second of each, and so on. Zhang et al. 2018."""
    x, name = as_value(input), "channel_shuffle"
    g = whole(name, x, "groups", groups)
    if x.ndim < 3:
        raise ShapeError(f"{name}({x!r}): the input must be [N, C, ...]")
    n, c, *space = x.shape
    if not isinstance(c, int) or g < 1 or c % g:
        raise shape_error(name, [x], f"{c} channels cannot be divided into groups={groups!r} groups")
    y = reshape(x, (n, g, c // g, *space))
    return reshape(permute(y, (0, 2, 1, *range(3, y.ndim))), x.shape)
