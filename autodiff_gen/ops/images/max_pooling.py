"""Max pooling: the largest element of each window of x[n, h, w, c], and its index i * kw + j in the window. Of equal
elements the first is chosen; NaN counts as the largest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...ir.build import apply
from ...ir.kernel_call import KernelCall, Operand, Result
from ...ir.node import Sample, Value, define
from ...ir.op_forms import FirstResultOnly
from ...ir.op_kinds import Attrs, KernelOp
from ...ir.strides import Strided, dense
from ...ir.types import Type, u8
from ...ir.windows import Windows
from ..support import by_operand
from .window_tiles import of_images
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

LARGEST_WINDOW = 256  # so that an index is one byte


def pooling(
    kernel: Pair,
    stride: Pair,
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    ceil_mode: bool = False,
) -> dict[str, Any]:
    """The attributes of max_pool2d; padding is top, bottom, left, right."""
    return {
        "kernel": kernel,
        "stride": stride,
        "padding": padding,
        "dilation": dilation,
        "ceil_mode": ceil_mode,
    }


def _out(size: Pair, attrs: Attrs) -> Pair:
    kernel, padding, dilation = attrs["kernel"], attrs["padding"], attrs["dilation"]
    out = output_size(size, kernel, attrs["stride"], padding, dilation, attrs["ceil_mode"])
    if kernel[0] * kernel[1] > LARGEST_WINDOW:
        raise ShapeError(
            f"a window of {kernel[0]} x {kernel[1]} elements is larger than {LARGEST_WINDOW}; "
            "pool along one axis, then along the other"
        )
    for axis, p in enumerate(padding):
        span = dilation[axis // 2] * (kernel[axis // 2] - 1) + 1
        if p > span // 2:
            raise ShapeError(f"padding={tuple(padding)} is more than half of a window, which spans {span}")
    return out


def _max_type(x: Type, **attrs: Any) -> tuple[Type, Type]:
    h, w, c = image(x)
    shape = image_shape(x.shape, _out((h, w), attrs), c)
    return Type(x.dtype, shape), Type(u8, shape)


def _check_index(x: Type, index: Type, out: Pair) -> tuple[int, int, int]:
    h, w, c = image(x)
    if index != Type(u8, image_shape(x.shape, out, c)):
        raise ShapeError(f"the index must be u8 of shape {[x.shape[0], *out, c]}")
    return h, w, c


def _dx_type(dy: Type, index: Type, *, size: Pair, **attrs: Any) -> Type:
    oh, ow, c = _check_index(dy, index, out := _out(size, attrs))
    if (oh, ow) != out:
        raise ShapeError(f"the gradient of an image of {list(size)} has {list(out)} windows")
    return Type(dy.dtype, image_shape(dy.shape, size, c))


def _pick_type(x: Type, index: Type, **attrs: Any) -> Type:
    h, w, _ = image(x)
    out = _out((h, w), attrs)
    *_, c = _check_index(x, index, out)
    return Type(x.dtype, image_shape(x.shape, out, c))


def _max(x: Any, **attrs: Any) -> tuple[Any, Any]:
    kernel, stride, dilation = attrs["kernel"], attrs["stride"], attrs["dilation"]
    out = _out(x.shape[1:3], attrs)
    wide = padded(x, kernel, stride, attrs["padding"], dilation, out, -np.inf)
    best = np.full((x.shape[0], *out, x.shape[3]), -np.inf, x.dtype)
    index = np.zeros(best.shape, np.uint8)
    inside = padded(np.ones_like(x), kernel, stride, attrs["padding"], dilation, out, 0.0) == 1.0
    valid = np.zeros(best.shape, bool)
    for i, j in np.ndindex(*kernel):
        elements = tap(i, j, stride, dilation, out)
        element = wide[elements]
        better = inside[elements] & (~valid | (element > best) | np.isnan(element))
        best = np.where(better, element, best)
        index = np.where(better, np.uint8(i * kernel[1] + j), index)
        valid |= inside[elements]
    return best, index


def _dx(dy: Any, index: Any, *, size: Pair, **attrs: Any) -> Any:
    kernel, stride, dilation = attrs["kernel"], attrs["stride"], attrs["dilation"]
    dx = np.zeros((dy.shape[0], *size, dy.shape[3]), dy.dtype)
    wide = padded(dx, kernel, stride, attrs["padding"], dilation, dy.shape[1:3], 0.0)
    for i, j in np.ndindex(*kernel):
        wide[tap(i, j, stride, dilation, dy.shape[1:3])] += np.where(index == i * kernel[1] + j, dy, 0)
    return cropped(wide, size, attrs["padding"])


def _pick(x: Any, index: Any, **attrs: Any) -> Any:
    kernel, stride, dilation = attrs["kernel"], attrs["stride"], attrs["dilation"]
    wide = padded(x, kernel, stride, attrs["padding"], dilation, index.shape[1:3], 0.0)
    y = np.zeros(index.shape, x.dtype)
    for i, j in np.ndindex(*kernel):
        y = np.where(index == i * kernel[1] + j, wide[tap(i, j, stride, dilation, index.shape[1:3])], y)
    return y


def _shape(x: Strided, size: Pair, out: Pair, attrs: Attrs) -> dict[str, int]:
    fields = geometry(x, size, attrs["kernel"], attrs["stride"], attrs["padding"], attrs["dilation"], out)
    c = x.shape[3]
    assert isinstance(c, int)
    return {**fields, "c": c, "divisor": 1, "count_pad": 0}


def _max_call(layouts: Sequence[Strided], results: Sequence[Type], attrs: Attrs) -> KernelCall:
    (x,), (y, _) = layouts, results
    shape = _shape(x, image_size(x.shape), image_size(y.shape), attrs)
    pointers = {"x": Operand(0), "y": Result(0), "index": Result(1)}
    return KernelCall("max_pool2d_f32", pointers, {"n": x.shape[0]}, shape=shape)


def _values_call(layouts: Sequence[Strided], results: Sequence[Type], attrs: Attrs) -> KernelCall:
    (x,), (y,) = layouts, results
    shape = _shape(x, image_size(x.shape), image_size(y.shape), attrs)
    return KernelCall(
        "max_pool2d_values_f32", {"x": Operand(0), "y": Result()}, {"n": x.shape[0]}, shape=shape
    )


def _dx_call(layouts: Sequence[Strided], results: Sequence[Type], attrs: Attrs) -> KernelCall:
    (dy, _), (dx,) = layouts, results
    shape = _shape(dense(dx.shape), attrs["size"], image_size(dy.shape), attrs)
    pointers = {"dy": Operand(0), "index": Operand(1), "dx": Result()}
    return KernelCall("max_pool2d_dx_f32", pointers, {"n": dy.shape[0]}, shape=shape)


def _pick_call(layouts: Sequence[Strided], results: Sequence[Type], attrs: Attrs) -> KernelCall:
    (x, index), _ = layouts, results
    shape = _shape(x, image_size(x.shape), image_size(index.shape), attrs)
    pointers = {"x": Operand(0), "index": Operand(1), "y": Result()}
    return KernelCall("max_pool2d_pick_f32", pointers, {"n": x.shape[0]}, shape=shape)


def _max_gradient(dy: Value, x: Value, y: Value, index: Value, attrs: Attrs) -> Value:
    return apply("max_pool2d_dx", dy, index, size=x.type.shape[1:3], **attrs)


def _dx_gradient(ddx: Value, dy: Value, index: Value, dx: Value, attrs: Attrs) -> Value:
    return apply("max_pool2d_pick", ddx, index, **{k: v for k, v in attrs.items() if k != "size"})


def _pick_gradient(dy: Value, x: Value, index: Value, y: Value, attrs: Attrs) -> Value:
    return apply("max_pool2d_dx", dy, index, size=x.type.shape[1:3], **attrs)


_ROWS: tuple[tuple[tuple[int, ...], dict[str, Any]], ...] = (
    ((2, 4, 6, 3), pooling((2, 2), (2, 2))),
    ((1, 5, 4, 2), pooling((3, 2), (1, 2), (1, 1, 1, 1))),
    ((1, 6, 5, 1), pooling((3, 3), (2, 2), (1, 1, 1, 1), ceil_mode=True)),
    ((1, 7, 6, 2), pooling((2, 3), (2, 1), (1, 1, 0, 0), (3, 2))),
    ((1, 1, 7, 1), pooling((1, 3), (1, 2))),
    ((1, 1, 1, 1), pooling((1, 1), (1, 1))),
)
# PyTorch's index counts the image's pixels. Row and column of element (i, j) of window (p, q) in the padded image:
_ROW = "stride[0] * torch.arange({n}.shape[1])[:, None, None] + {i} // kernel[1] * dilation[0]"
_COLUMN = "stride[1] * torch.arange({n}.shape[2])[:, None] + {i} % kernel[1] * dilation[1]"
_HEIGHT = (
    "sum(padding[:2]) + {h} + kernel[0] * dilation[0] + stride[0]"  # large enough for windows that overhang
)
_WIDTH = "sum(padding[2:]) + {w} + kernel[1] * dilation[1] + stride[1]"


def _flat(n: str, w: str) -> str:
    row, column = (part.format(n=n, i="b.long()") for part in (_ROW, _COLUMN))
    return f"(({row}) * ({_WIDTH.format(w=w)}) + {column}).flatten(1, 2)"


_TORCH_MAX = (
    "(lambda v, i: (v.permute(0, 2, 3, 1), ((i // a.shape[2] + padding[0] - stride[0] * torch.arange(v.shape[2])"
    "[:, None]) // dilation[0] * kernel[1] + (i % a.shape[2] + padding[2] - stride[1] * torch.arange(v.shape[3])) "
    "// dilation[1]).permute(0, 2, 3, 1).to(torch.uint8)))(*torch.nn.functional.max_pool2d(a.permute(0, 3, 1, 2), "
    "kernel, stride, padding[::2], dilation, ceil_mode, return_indices=True))"
)
_TORCH_DX = (
    f"torch.zeros(a.shape[0], ({_HEIGHT.format(h='size[0]')}) * ({_WIDTH.format(w='size[1]')}), a.shape[3], "
    f"dtype=a.dtype).scatter_add(1, {_flat('a', 'size[1]')}, a.flatten(1, 2))"
    f".unflatten(1, ({_HEIGHT.format(h='size[0]')}, {_WIDTH.format(w='size[1]')}))"
    "[:, padding[0]:padding[0] + size[0], padding[2]:padding[2] + size[1]]"
)
_TORCH_PICK = (
    "torch.nn.functional.pad(a, (0, 0, padding[2], padding[3] + kernel[1] * dilation[1] + stride[1], "
    "padding[0], padding[1] + kernel[0] * dilation[0] + stride[0])).flatten(1, 2)"
    f".gather(1, {_flat('b', 'a.shape[2]')}).unflatten(1, (b.shape[1], b.shape[2]))"
)


def _outputs(x: tuple[int, ...], attrs: Attrs) -> tuple[int, ...]:
    return (x[0], *_out((x[1], x[2]), attrs), x[3])


def _indexed(x: tuple[int, ...], y: tuple[int, ...], attrs: dict[str, Any]) -> Sample:
    kernel = attrs["kernel"]
    return Sample((x, y), attrs, dtypes={1: "u8"}, high=kernel[0] * kernel[1])


max_pool2d = define(
    "max_pool2d",  # y[n, oh, ow, c], index: u8 of that shape
    infer=_max_type,
    ref=_max,
    vjp=by_operand(_max_gradient),
    lower=KernelOp(_max_call, strided=(0,), tile=of_images),
    samples=tuple(Sample((x,), attrs) for x, attrs in _ROWS),
    torch=_TORCH_MAX,
    windows=lambda shapes, attrs: Windows(0, attrs["kernel"], border=-math.inf),
)

max_pool2d_values = define(
    "max_pool2d_values",  # y of a max_pool2d whose index is not read; created by the pass fuse_calls
    infer=lambda x, **attrs: _max_type(x, **attrs)[0],
    ref=lambda x, **attrs: _max(x, **attrs)[0],
    vjp=None,
    lower=KernelOp(_values_call, strided=(0,), tile=of_images),
    samples=tuple(Sample((x,), attrs) for x, attrs in _ROWS),
    torch=f"({_TORCH_MAX})[0]",
    form=FirstResultOnly("max_pool2d"),
)

max_pool2d_dx = define(
    "max_pool2d_dx",  # dx[n, h, w, c]: each element of dy added at the index in its window, 0 elsewhere
    infer=_dx_type,
    ref=_dx,
    vjp=by_operand(_dx_gradient, None),
    lower=KernelOp(_dx_call, tile=of_images),
    samples=tuple(_indexed(_outputs(x, a), _outputs(x, a), {**a, "size": x[1:3]}) for x, a in _ROWS),
    torch=_TORCH_DX,
    scatters=(1, 2),
)

max_pool2d_pick = define(
    "max_pool2d_pick",  # y[n, oh, ow, c]: the element of each window of x at its index; 0 in the padding
    infer=_pick_type,
    ref=_pick,
    vjp=by_operand(_pick_gradient, None),
    lower=KernelOp(_pick_call, strided=(0,), tile=of_images),
    samples=tuple(_indexed(x, _outputs(x, a), a) for x, a in _ROWS),
    torch=_TORCH_PICK,
)
