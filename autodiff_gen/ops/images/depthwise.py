"""Depthwise convolution of x[n, h, w, c] with one filter per channel, w[kh, kw, c], and its adjoints."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ShapeError
from ...ir.op_kinds import Attrs
from ...ir.types import Type
from ..support import same_dtype
from .window_products import Row, WindowProduct, at_tap, size_of, with_border
from .windows import Padding, Pair, cropped, image, image_shape


def depthwise(
    stride: Pair = (1, 1), padding: Padding = (0, 0, 0, 0), dilation: Pair = (1, 1)
) -> dict[str, Any]:
    """The attributes of all three ops; padding is top, bottom, left, right."""
    return {"stride": stride, "padding": padding, "dilation": dilation}


def _window(w: Type, c: int) -> Pair:
    if len(w.shape) != 3 or w.shape[2] != c:
        raise ShapeError(f"the weights must be [kh, kw, {c}]")
    kh, kw = w.shape[:2]
    assert isinstance(kh, int) and isinstance(kw, int)
    return kh, kw


def _depthwise_type(x: Type, w: Type, **attrs: Any) -> Type:
    same_dtype(x, w)
    h, width, c = image(x)
    return Type(x.dtype, image_shape(x.shape, size_of((h, width), _window(w, c), attrs), c))


def _check_gradient(dy: Type, size: Pair, kernel: Pair, attrs: Attrs) -> int:
    oh, ow, c = image(dy)
    if (out := size_of(size, kernel, attrs)) != (oh, ow):
        raise ShapeError(f"the result for an image of {list(size)} is [n, {out[0]}, {out[1]}, {c}]")
    return c


def _depthwise_dx_type(dy: Type, w: Type, *, size: Pair, **attrs: Any) -> Type:
    same_dtype(dy, w)
    *_, c = image(dy)
    _check_gradient(dy, size, _window(w, c), attrs)
    return Type(dy.dtype, image_shape(dy.shape, size, c))


def _depthwise_dw_type(x: Type, dy: Type, *, kernel: Pair, **attrs: Any) -> Type:
    same_dtype(x, dy)
    h, w, c = image(x)
    if x.shape[0] != dy.shape[0] or _check_gradient(dy, (h, w), kernel, attrs) != c:
        raise ShapeError("both operands must have the same number of images and channels")
    return Type(x.dtype, (*kernel, c))


def _depthwise(x: Any, w: Any, **attrs: Any) -> Any:
    kernel, out = w.shape[:2], size_of(x.shape[1:3], w.shape[:2], attrs)
    wide = with_border(x, kernel, out, attrs)
    y = np.zeros((x.shape[0], *out, x.shape[3]), x.dtype)
    for i, j in np.ndindex(*kernel):
        y += wide[at_tap(i, j, out, attrs)] * w[i, j]
    return y


def _depthwise_dx(dy: Any, w: Any, *, size: Pair, **attrs: Any) -> Any:
    kernel, out = w.shape[:2], dy.shape[1:3]
    wide = with_border(np.zeros((dy.shape[0], *size, dy.shape[3]), dy.dtype), kernel, out, attrs)
    for i, j in np.ndindex(*kernel):
        wide[at_tap(i, j, out, attrs)] += dy * w[i, j]
    return cropped(wide, size, attrs["padding"])


def _depthwise_dw(x: Any, dy: Any, *, kernel: Pair, **attrs: Any) -> Any:
    out = dy.shape[1:3]
    wide = with_border(x, kernel, out, attrs)
    dw = np.zeros((*kernel, x.shape[3]), x.dtype)
    for i, j in np.ndindex(*kernel):
        dw[i, j] = np.einsum("npqc,npqc->c", wide[at_tap(i, j, out, attrs)], dy)
    return dw


_ROWS: tuple[Row, ...] = (
    ((2, 4, 5, 3), (3, 2, 3), depthwise()),
    ((1, 5, 5, 2), (3, 3, 2), depthwise((2, 2), (1, 1, 1, 1))),
    ((1, 6, 4, 1), (2, 3, 1), depthwise((1, 2), (1, 0, 0, 2), (2, 1))),
    ((1, 1, 1, 1), (1, 1, 1), depthwise()),
)
_TORCH = (
    "torch.nn.functional.conv2d(torch.nn.functional.pad({x}.permute(0, 3, 1, 2), padding[2:] + padding[:2]), "
    "{w}.permute(2, 0, 1).unsqueeze(1), None, stride, 0, dilation, a.shape[3]).permute(0, 2, 3, 1)"
)


def _outputs(x: tuple[int, ...], w: tuple[int, ...], attrs: Attrs) -> tuple[int, ...]:
    return (x[0], *size_of((x[1], x[2]), (w[0], w[1]), attrs), x[3])


# depthwise2d: y[n, p, q, c] = sum of x[n, p sh - top + i dh, q sw - left + j dw, c] w[i, j, c]
depthwise2d, depthwise2d_dx, depthwise2d_dw, depthwise2d_dw_into = WindowProduct(
    "depthwise2d",
    attributes=("stride", "padding", "dilation"),
    window=lambda w: w[:2],
    infer=(_depthwise_type, _depthwise_dx_type, _depthwise_dw_type),
    ref=(_depthwise, _depthwise_dx, _depthwise_dw),
    rows=_ROWS,
    outputs=_outputs,
    torch=_TORCH,
    torch_x="a.shape[0], *size, a.shape[3]",
    torch_w="*kernel, a.shape[3]",
    channels=lambda attrs: (2, 2),
).register()
