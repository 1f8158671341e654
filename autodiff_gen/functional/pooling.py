"""Pooling, as in torch.nn.functional, of images [N, C, H, W] or [C, H, W]; [N, C, L] or [C, L] for one axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir.node import Value
from ..ir.types import plain
from ..ops.images.avg_pooling import averaging
from ..ops.images.max_pooling import LARGEST_WINDOW, pooling
from .arguments import TensorLike, as_value, torch_lacks
from .joining import cat
from .products import matmul
from .reductions import max, mean
from .shapes import reshape
from .slicing import cut
from .windows import Images, Numbers, Pair, applied, images, on_both_sides, pair

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "avg_pool1d",
    "avg_pool2d",
    "max_pool1d",
    "max_pool2d",
]

Sizes = int | None | tuple[int | None, ...]


@torch_lacks(return_indices=False)
def max_pool1d(
    input: TensorLike,
    kernel_size: Numbers,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    ceil_mode: bool = False,
) -> Value:
    """max_pool2d along one axis."""
    return _max_pool("max_pool1d", 1, input, kernel_size, stride, padding, dilation, ceil_mode)


@torch_lacks(return_indices=False)
def max_pool2d(
    input: TensorLike,
    kernel_size: Numbers,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    ceil_mode: bool = False,
) -> Value:
    """The largest element of each window: [N, C, H, W] -> [N, C, rows, columns]. The gradient goes to the first of
    equal elements. stride: kernel_size by default."""
    return _max_pool("max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode)


def _max_pool(
    name: str,
    axes: int,
    input: Any,
    kernel_size: Numbers,
    stride: Numbers | None,
    padding: Numbers,
    dilation: Numbers,
    ceil_mode: bool,
) -> Value:
    x = images(name, input, axes)
    kernel = pair(name, "kernel_size", kernel_size, axes)
    strides = kernel if stride is None else pair(name, "stride", stride, axes)
    sides = pair(name, "padding", padding, axes, absent=0)
    dilations = pair(name, "dilation", dilation, axes)
    parts = [(kernel, strides, sides, dilations)]
    if kernel[0] * kernel[1] > LARGEST_WINDOW and min(kernel) > 1:
        # First along rows: the first row with the largest element then has the first largest element of the window.
        along_row = ((1, kernel[1]), (1, strides[1]), (0, sides[1]), (1, dilations[1]))
        parts = [along_row, ((kernel[0], 1), (strides[0], 1), (sides[0], 0), (dilations[0], 1))]
    y = x.value
    for window, step, padded, spacing in parts:
        attrs = pooling(window, step, on_both_sides(padded), spacing, ceil_mode)
        y = applied(name, [as_value(input)], "max_pool2d", y, **attrs).results[0]
    return x.back(y)


def avg_pool1d(
    input: TensorLike,
    kernel_size: Numbers,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Value:
    """avg_pool2d along one axis."""
    return _avg_pool("avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def avg_pool2d(
    input: TensorLike,
    kernel_size: Numbers,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Value:
    """The mean of each window: [N, C, H, W] -> [N, C, rows, columns]. Padding elements are 0, and are counted unless
    count_include_pad=False. divisor_override: the divisor instead of the count. stride: kernel_size by default."""
    numbers = kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    return _avg_pool("avg_pool2d", 2, input, *numbers)


def _avg_pool(
    name: str,
    axes: int,
    input: Any,
    kernel_size: Numbers,
    stride: Numbers | None,
    padding: Numbers,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Value:
    x = images(name, input, axes)
    kernel = pair(name, "kernel_size", kernel_size, axes)
    strides = kernel if stride is None else pair(name, "stride", stride, axes)
    sides = on_both_sides(pair(name, "padding", padding, axes, absent=0))
    if divisor_override == 0:
        raise ShapeError(f"{name}: divisor_override must not be 0")
    divisor = divisor_override or 0
    if not divisor and not ceil_mode and (count_include_pad or not any(sides)):
        divisor = kernel[0] * kernel[1]  # the same for every window
    attrs = averaging(kernel, strides, sides, ceil_mode, count_include_pad, divisor)
    return x.back(applied(name, [as_value(input)], "avg_pool2d", x.value, **attrs).results[0])


def adaptive_avg_pool1d(input: TensorLike, output_size: Sizes) -> Value:
    """adaptive_avg_pool2d along one axis."""
    return _adaptive("adaptive_avg_pool1d", 1, input, output_size, _means)


def adaptive_avg_pool2d(input: TensorLike, output_size: Sizes) -> Value:
    """The means of output_size windows that cover the image: window k of m along an axis of n pixels begins at
    floor(k n / m) and ends before ceil((k + 1) n / m). An output size None is the input's size."""
    return _adaptive("adaptive_avg_pool2d", 2, input, output_size, _means)


@torch_lacks(return_indices=False)
def adaptive_max_pool1d(input: TensorLike, output_size: Sizes) -> Value:
    """adaptive_max_pool2d along one axis."""
    return _adaptive("adaptive_max_pool1d", 1, input, output_size, _maxima)


@torch_lacks(return_indices=False)
def adaptive_max_pool2d(input: TensorLike, output_size: Sizes) -> Value:
    """The largest elements of the windows that adaptive_avg_pool2d has."""
    return _adaptive("adaptive_max_pool2d", 2, input, output_size, _maxima)


def _adaptive(
    name: str, axes: int, input: Any, output_size: Sizes, pooled: Callable[[str, Images, Pair], Value]
) -> Value:
    x = images(name, input, axes)
    given = tuple(map(plain, output_size if isinstance(output_size, tuple | list) else (output_size,) * axes))
    if len(given) != axes or not all(d is None or (isinstance(d, int) and d >= 1) for d in given):
        raise ShapeError(
            f"{name}: output_size={output_size!r} must be {axes} integers of at least 1, or None"
        )
    wanted = (*([1] * (2 - axes)), *given)
    rows, columns = (size if m is None else m for m, size in zip(wanted, x.size, strict=True))
    return x.back(pooled(name, x, (rows, columns)))


def _spans(size: int, count: int) -> list[tuple[int, int]]:
    """Start and end of each of `count` adaptive windows along an axis."""
    return [(k * size // count, -(-(k + 1) * size // count)) for k in range(count)]


def _means(name: str, x: Images, count: Pair) -> Value:
    size = x.size
    if count == (1, 1):
        return mean(x.value, (1, 2), keepdim=True)
    if all(s % m == 0 for s, m in zip(size, count, strict=True)):
        kernel = size[0] // count[0], size[1] // count[1]
        attrs = averaging(kernel, kernel, divisor=kernel[0] * kernel[1])
        return applied(name, [x.value], "avg_pool2d", x.value, **attrs).results[0]
    y = x.value
    n, h, w, c = y.shape
    if count[0] != size[0]:
        rows = matmul(_shares(size[0], count[0]), reshape(y, (n, h, size[1] * x.channels)))
        y = reshape(rows, (n, count[0], w, c))
    return y if count[1] == size[1] else matmul(_shares(size[1], count[1]), y)


def _shares(size: int, count: int) -> Any:
    """[windows, pixels]: 1 / size of the window for the pixels in it, 0 elsewhere."""
    out = np.zeros((count, size), np.float32)
    for k, (start, end) in enumerate(_spans(size, count)):
        out[k, start:end] = 1.0 / (end - start)
    return out


def _maxima(name: str, x: Images, count: Pair) -> Value:
    y, size = x.value, x.size
    if all(s % m == 0 for s, m in zip(size, count, strict=True)):
        kernel = size[0] // count[0], size[1] // count[1]
        if kernel[0] * kernel[1] <= LARGEST_WINDOW:
            return applied(name, [y], "max_pool2d", y, **pooling(kernel, kernel)).results[0]
    # First along rows: the first row with the largest element then has the first largest element of the window.
    for axis in (2, 1):
        if count[axis - 1] != size[axis - 1]:
            spans = _spans(size[axis - 1], count[axis - 1])
            y = cat([max(cut(y, axis, a, b - a), axis, keepdim=True)[0] for a, b in spans], axis)
    return y
