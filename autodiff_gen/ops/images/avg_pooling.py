"""Average pooling: means over windows of x[n, h, w, c]. The adjoint is an op too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...ir.build import apply
from ...ir.kernel_call import KernelCall, Operand, Result
from ...ir.node import Sample, Value, define
from ...ir.op_kinds import Attrs, KernelOp
from ...ir.strides import Strided, dense
from ...ir.types import Type
from ...ir.windows import Windows
from ..support import by_operand
from .window_tiles import of_image, of_images
from .windows import (
    Padding,
    Pair,
    cropped,
    geometry,
    image,
    image_shape,
    image_size,
    output_size,
    padded,
    tap,
)

NO_DILATION = (1, 1)


def _avg_out(size: Pair, attrs: Attrs) -> Pair:
    return output_size(
        size, attrs["kernel"], attrs["stride"], attrs["padding"], NO_DILATION, attrs["ceil_mode"]
    )


def _avg_type(x: Type, **attrs: Any) -> Type:
    h, w, c = image(x)
    _check_padding(attrs["kernel"], attrs["padding"])
    return Type(x.dtype, image_shape(x.shape, _avg_out((h, w), attrs), c))


def _check_padding(kernel: Pair, padding: Padding) -> None:
    if any(p > kernel[k // 2] // 2 for k, p in enumerate(padding)):
        raise ShapeError(f"padding={tuple(padding)} is more than half of kernel_size={tuple(kernel)}")


def _counts(size: Pair, out: Pair, attrs: Attrs) -> Any:
    """The divisor of each window's sum: [oh, ow]."""
    if attrs["divisor"]:
        return np.full(out, float(attrs["divisor"]))
    counts = []
    for axis in range(2):
        kernel, stride = attrs["kernel"][axis], attrs["stride"][axis]
        before, after = attrs["padding"][2 * axis : 2 * axis + 2]
        start = np.arange(out[axis]) * stride - before
        end = np.minimum(start + kernel, size[axis] + after)
        if not attrs["count_include_pad"]:
            start, end = np.maximum(start, 0), np.minimum(end, size[axis])
        counts.append(end - start)
    return np.outer(*counts).astype(float)


def _avg(x: Any, **attrs: Any) -> Any:
    size = x.shape[1:3]
    out = _avg_out(size, attrs)
    wide = padded(x, attrs["kernel"], attrs["stride"], attrs["padding"], NO_DILATION, out, 0.0)
    total = np.zeros((x.shape[0], *out, x.shape[3]), x.dtype)
    for i, j in np.ndindex(*attrs["kernel"]):
        total += wide[tap(i, j, attrs["stride"], NO_DILATION, out)]
    return total / _counts(size, out, attrs)[:, :, None].astype(x.dtype)


def _avg_dx_type(dy: Type, *, size: Pair, **attrs: Any) -> Type:
    oh, ow, c = image(dy)
    if (oh, ow) != (out := _avg_out(size, attrs)):
        raise ShapeError(f"the gradient of an image of {list(size)} has {list(out)} windows")
    return Type(dy.dtype, image_shape(dy.shape, size, c))


def _avg_dx(dy: Any, *, size: Pair, **attrs: Any) -> Any:
    out = dy.shape[1:3]
    share = dy / _counts(size, out, attrs)[:, :, None].astype(dy.dtype)
    dx = np.zeros((dy.shape[0], *size, dy.shape[3]), dy.dtype)
    wide = padded(dx, attrs["kernel"], attrs["stride"], attrs["padding"], NO_DILATION, out, 0.0)
    for i, j in np.ndindex(*attrs["kernel"]):
        wide[tap(i, j, attrs["stride"], NO_DILATION, out)] += share
    return cropped(wide, size, attrs["padding"])


def _avg_shape(layout: Strided, size: Pair, out: Pair, attrs: Attrs) -> dict[str, int]:
    fields = geometry(layout, size, attrs["kernel"], attrs["stride"], attrs["padding"], NO_DILATION, out)
    divisor = {"divisor": attrs["divisor"], "count_pad": int(attrs["count_include_pad"])}
    c = layout.shape[3]
    assert isinstance(c, int)
    return {**fields, "c": c, **divisor}


def _avg_call(layouts: Sequence[Strided], results: Sequence[Type], attrs: Attrs) -> KernelCall:
    (x,), (y,) = layouts, results
    return KernelCall(
        "avg_pool2d_f32",
        {"x": Operand(0), "y": Result()},
        {"n": x.shape[0]},
        shape=_avg_shape(x, image_size(x.shape), image_size(y.shape), attrs),
    )


def _avg_dx_call(layouts: Sequence[Strided], results: Sequence[Type], attrs: Attrs) -> KernelCall:
    (dy,), (dx,) = layouts, results
    return KernelCall(
        "avg_pool2d_dx_f32",
        {"dy": Operand(0), "dx": Result()},
        {"n": dy.shape[0]},
        shape=_avg_shape(dense(dx.shape), attrs["size"], image_size(dy.shape), attrs),
    )


def _avg_gradient(dy: Value, x: Value, y: Value, attrs: Attrs) -> Value:
    return apply("avg_pool2d_dx", dy, size=x.type.shape[1:3], **attrs)


def _avg_dx_gradient(ddx: Value, dy: Value, dx: Value, attrs: Attrs) -> Value:
    return apply("avg_pool2d", ddx, **{k: v for k, v in attrs.items() if k != "size"})


def _border(attrs: Attrs) -> float | None:
    """The number that elements outside of the image count as; None if they are not counted."""
    return 0.0 if attrs["count_include_pad"] or attrs["divisor"] else None


def averaging(
    kernel: Pair,
    stride: Pair,
    padding: Padding = (0, 0, 0, 0),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor: int = 0,
) -> dict[str, Any]:
    """The attributes of avg_pool2d; padding is top, bottom, left, right; divisor 0: the number of elements."""
    return {
        "kernel": kernel,
        "stride": stride,
        "padding": padding,
        "ceil_mode": ceil_mode,
        "count_include_pad": count_include_pad,
        "divisor": divisor,
    }


_AVERAGES = (
    ((2, 4, 6, 3), averaging((2, 2), (2, 2))),
    ((1, 5, 4, 2), averaging((3, 2), (1, 2), (1, 1, 1, 1))),
    ((1, 5, 5, 2), averaging((3, 3), (2, 2), (1, 1, 0, 0), count_include_pad=False)),
    ((1, 6, 5, 1), averaging((3, 3), (2, 2), (1, 1, 1, 1), ceil_mode=True)),
    ((1, 6, 5, 1), averaging((2, 3), (3, 2), (1, 1, 1, 1), ceil_mode=True, count_include_pad=False)),
    ((1, 4, 4, 1), averaging((2, 2), (1, 1), divisor=3)),
    ((1, 1, 7, 1), averaging((1, 3), (1, 2))),
    ((1, 1, 1, 1), averaging((1, 1), (1, 1))),
)
_TORCH_AVERAGE = (
    "torch.nn.functional.avg_pool2d({x}, kernel, stride, padding[::2], ceil_mode, count_include_pad, "
    "divisor or None).permute(0, 2, 3, 1)"
)

avg_pool2d = define(
    "avg_pool2d",  # y[n, oh, ow, c] = the mean over each window of x[n, h, w, c]
    infer=_avg_type,
    ref=_avg,
    vjp=by_operand(_avg_gradient),
    lower=KernelOp(_avg_call, strided=(0,), tile=of_image),
    samples=tuple(Sample((shape,), attrs) for shape, attrs in _AVERAGES),
    torch=_TORCH_AVERAGE.format(x="a.permute(0, 3, 1, 2)"),
    windows=lambda shapes, attrs: Windows(0, attrs["kernel"], border=_border(attrs)),
)

avg_pool2d_dx = define(
    "avg_pool2d_dx",  # dx[n, h, w, c]: each element of dy[n, oh, ow, c] distributed over its window
    infer=_avg_dx_type,
    ref=_avg_dx,
    vjp=by_operand(_avg_dx_gradient),
    lower=KernelOp(_avg_dx_call, tile=of_images),
    samples=tuple(
        Sample(((shape[0], *_avg_out(shape[1:3], attrs), shape[3]),), {**attrs, "size": shape[1:3]})
        for shape, attrs in _AVERAGES
    ),
    torch="torch.ops.aten.avg_pool2d_backward(a.permute(0, 3, 1, 2), torch.zeros(a.shape[0], a.shape[3], "
    "*size, dtype=a.dtype), kernel, stride, padding[::2], ceil_mode, count_include_pad, divisor or None)"
    ".permute(0, 2, 3, 1)",
)
