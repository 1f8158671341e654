"""Sliding windows over the two middle axes of x[n, h, w, c], for convolution and pooling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...ir.strides import Strided, row_major
from ...ir.types import Dim, Shape, Type
from ..support import check_float

Pair = tuple[int, int]
Padding = tuple[int, int, int, int]  # top, bottom, left, right


def window_count(
    size: int, kernel: int, stride: int, before: int, after: int, dilation: int = 1, ceil_mode: bool = False
) -> int:
    """The number of windows along an axis. With ceil_mode, as in PyTorch, the last window may overhang the end if it
    starts in the axis or in the padding before it.
    """
    reach = size + before + after - dilation * (kernel - 1) - 1
    count = (reach + stride - 1 if ceil_mode else reach) // stride + 1
    if ceil_mode and (count - 1) * stride >= size + before:
        count -= 1
    return count


def image(x: Type) -> tuple[int, int, int]:
    """h, w, c of x[n, h, w, c]. Raises ShapeError unless x is a float with 4 axes; only the first may be the batch
    axis."""
    check_float(x)
    return image_axes(x)


def image_axes(x: Type) -> tuple[int, int, int]:
    """As `image`, for any dtype."""
    if len(x.shape) != 4:
        raise ShapeError(f"needs 4 axes, [n, h, w, c], not {len(x.shape)}")
    h, w, c = x.shape[1:]
    if isinstance(h, Dim) or isinstance(w, Dim) or isinstance(c, Dim):
        raise ShapeError("only the first axis may be the batch axis")
    return h, w, c


def check_pair(name: str, pair: Sequence[int], least: int = 1) -> None:
    if len(pair) not in (2, 4) or any(not isinstance(k, int) or k < least for k in pair):
        raise ShapeError(f"{name}={tuple(pair)}: must be integers of at least {least}")


def output_size(
    size: Pair, kernel: Pair, stride: Pair, padding: Padding, dilation: Pair, ceil_mode: bool = False
) -> Pair:
    """Rows and columns of windows. Raises ShapeError if a number is out of range or no window fits."""
    check_pair("kernel_size", kernel)
    check_pair("stride", stride)
    check_pair("padding", padding, least=0)
    check_pair("dilation", dilation)
    out = []
    for axis in range(2):
        before, after = padding[2 * axis : 2 * axis + 2]
        count = window_count(size[axis], kernel[axis], stride[axis], before, after, dilation[axis], ceil_mode)
        if count < 1:
            span = dilation[axis] * (kernel[axis] - 1) + 1
            raise ShapeError(
                f"a window of {span} does not fit into {size[axis]} with padding {before} and {after} "
                f"along the {('height', 'width')[axis]}"
            )
        out.append(count)
    return out[0], out[1]


def geometry(
    layout: Strided, size: Pair, kernel: Pair, stride: Pair, padding: Padding, dilation: Pair, out: Pair
) -> dict[str, int]:
    """The common fields of the shape structs of kernels, for x[n, h, w, c] with the given layout. An axis of extent 1
    gets its stride in a dense array, for which kernels need fewer conditions."""
    pairs: dict[str, Sequence[int]] = {"": size, "k": kernel, "o": out}
    fields = {f"{prefix}{axis}": pair[k] for prefix, pair in pairs.items() for k, axis in enumerate("hw")}
    named: Mapping[str, Pair] = {"stride": stride, "dilation": dilation}
    fields |= {f"{name}_{axis}": pair[k] for name, pair in named.items() for k, axis in enumerate("hw")}
    fields |= dict(zip(("pad_top", "pad_bottom", "pad_left", "pad_right"), padding, strict=True))
    steps = zip("nhwc", layout.shape, layout.strides, row_major(layout.shape), strict=True)
    return fields | {f"x_{axis}": dense if d == 1 else step for axis, d, step, dense in steps}


def padded(
    x: Any, kernel: Pair, stride: Pair, padding: Padding, dilation: Pair, out: Pair, fill: float
) -> Any:
    """x padded with `fill` so that it contains every window."""
    widths = [(0, 0)]
    for axis in range(2):
        before = padding[2 * axis]
        needed = (out[axis] - 1) * stride[axis] + dilation[axis] * (kernel[axis] - 1) + 1
        widths.append((before, max(needed - before - x.shape[1 + axis], 0)))
    return np.pad(x, [*widths, (0, 0)], constant_values=fill)


def tap(i: int, j: int, stride: Pair, dilation: Pair, out: Pair) -> tuple[slice, slice, slice]:
    """The index of element (i, j) of every window in the result of `padded`."""
    rows, columns = (
        slice(k * d, k * d + s * (o - 1) + 1, s)
        for k, d, s, o in zip((i, j), dilation, stride, out, strict=True)
    )
    return slice(None), rows, columns


def cropped(x: Any, size: Pair, padding: Padding) -> Any:
    """The image without the border that `padded` added."""
    top, left = padding[0], padding[2]
    return x[:, top : top + size[0], left : left + size[1]]


def image_shape(shape: Shape, size: Pair, channels: int) -> Shape:
    return (shape[0], *size, channels)


def image_size(shape: Sequence[Any]) -> Pair:
    """The two middle extents of an image or of weights[o, kh, kw, c]."""
    rows, columns = shape[1:3]
    assert isinstance(rows, int) and isinstance(columns, int)
    return rows, columns
