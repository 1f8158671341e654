"""Convolution of images x[n, h, w, c] with w[o, kh, kw, c / groups], and its adjoints with respect to each operand. A
transposed convolution is `conv2d_dx`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ShapeError
from ...ir.op_kinds import Attrs
from ...ir.types import Type
from ..support import same_dtype
from .window_products import Row, WindowProduct, at_tap, size_of, with_border
from .windows import Padding, Pair, cropped, image, image_shape, image_size


def convolving(
    stride: Pair = (1, 1), padding: Padding = (0, 0, 0, 0), dilation: Pair = (1, 1), groups: int = 1
) -> dict[str, Any]:
    """The attributes of all three ops; padding is top, bottom, left, right."""
    return {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}


def _check_groups(c: int, o: int, groups: int) -> None:
    if groups < 1 or c % groups or o % groups:
        raise ShapeError(f"groups={groups} must divide the {c} input channels and the {o} output channels")


def _weights(w: Type, groups: int) -> tuple[int, Pair, int]:
    """Output channels, window and input channels of weights[o, kh, kw, c / groups]."""
    if len(w.shape) != 4 or not all(isinstance(d, int) for d in w.shape):
        raise ShapeError("the weights need 4 fixed axes, [o, kh, kw, c / groups]")
    o, kh, kw, c = w.shape
    assert isinstance(o, int) and isinstance(kh, int) and isinstance(kw, int) and isinstance(c, int)
    return o, (kh, kw), c * groups


def _conv2d_type(x: Type, w: Type, **attrs: Any) -> Type:
    same_dtype(x, w)
    h, width, c = image(x)
    o, kernel, channels = _weights(w, attrs["groups"])
    if c != channels and attrs["groups"] >= 1:
        raise ShapeError(
            f"the image has {c} channels, the weights are for {channels} (groups={attrs['groups']})"
        )
    _check_groups(c, o, attrs["groups"])
    return Type(x.dtype, image_shape(x.shape, size_of((h, width), kernel, attrs), o))


def _check_gradient(dy: Type, size: Pair, kernel: Pair, o: int, attrs: Attrs) -> None:
    oh, ow, channels = image(dy)
    if (out := size_of(size, kernel, attrs)) != (oh, ow) or channels != o:
        raise ShapeError(f"the result for an image of {list(size)} is [n, {out[0]}, {out[1]}, {o}]")


def _conv2d_dx_type(dy: Type, w: Type, *, size: Pair, **attrs: Any) -> Type:
    same_dtype(dy, w)
    o, kernel, c = _weights(w, attrs["groups"])
    _check_groups(c, o, attrs["groups"])
    _check_gradient(dy, size, kernel, o, attrs)
    return Type(dy.dtype, image_shape(dy.shape, size, c))


def _conv2d_dw_type(x: Type, dy: Type, *, kernel: Pair, **attrs: Any) -> Type:
    same_dtype(x, dy)
    h, w, c = image(x)
    *_, o = image(dy)
    if x.shape[0] != dy.shape[0]:
        raise ShapeError(f"{x.shape[0]!r} images against {dy.shape[0]!r} gradients")
    _check_groups(c, o, attrs["groups"])
    _check_gradient(dy, (h, w), kernel, o, attrs)
    return Type(x.dtype, (o, *kernel, c // attrs["groups"]))


# NumPy reference


def _grouped(x: Any, groups: int) -> Any:
    """The last axis split into [groups, channels per group]."""
    return x.reshape(*x.shape[:-1], groups, -1)


def _filters(w: Any, groups: int) -> Any:
    """[o, kh, kw, c / groups] -> [groups, o / groups, kh, kw, c / groups]."""
    return w.reshape(groups, -1, *w.shape[1:])


def _conv2d(x: Any, w: Any, *, groups: int, **attrs: Any) -> Any:
    kernel, out = w.shape[1:3], size_of(x.shape[1:3], w.shape[1:3], attrs)
    wide = _grouped(with_border(x, kernel, out, attrs), groups)
    filters = _filters(w, groups)
    y = np.zeros((x.shape[0], *out, groups, filters.shape[1]), x.dtype)
    for i, j in np.ndindex(*kernel):
        y += np.einsum("npqgc,goc->npqgo", wide[at_tap(i, j, out, attrs)], filters[:, :, i, j])
    return y.reshape(*y.shape[:3], -1)


def _conv2d_dx(dy: Any, w: Any, *, size: Pair, groups: int, **attrs: Any) -> Any:
    kernel, out, filters = w.shape[1:3], dy.shape[1:3], _filters(w, groups)
    dx = np.zeros((dy.shape[0], *size, groups * w.shape[3]), dy.dtype)
    wide = with_border(dx, kernel, out, attrs)
    shares = _grouped(wide, groups)
    for i, j in np.ndindex(*kernel):
        shares[at_tap(i, j, out, attrs)] += np.einsum(
            "npqgo,goc->npqgc", _grouped(dy, groups), filters[:, :, i, j]
        )
    return cropped(wide, size, attrs["padding"])


def _conv2d_dw(x: Any, dy: Any, *, kernel: Pair, groups: int, **attrs: Any) -> Any:
    out = dy.shape[1:3]
    wide = _grouped(with_border(x, kernel, out, attrs), groups)
    dw = np.zeros((groups, dy.shape[3] // groups, *kernel, x.shape[3] // groups), x.dtype)
    for i, j in np.ndindex(*kernel):
        dw[:, :, i, j] = np.einsum("npqgc,npqgo->goc", wide[at_tap(i, j, out, attrs)], _grouped(dy, groups))
    return dw.reshape(-1, *dw.shape[2:])


_ROWS: tuple[Row, ...] = (
    ((2, 4, 5, 3), (4, 3, 2, 3), convolving()),
    ((1, 5, 4, 2), (3, 3, 3, 2), convolving((2, 1), (1, 1, 1, 1))),
    ((1, 6, 7, 1), (2, 2, 3, 1), convolving((3, 2), (0, 1, 2, 0))),
    ((1, 7, 6, 2), (1, 2, 2, 2), convolving(dilation=(3, 2), padding=(1, 1, 0, 0))),
    ((2, 4, 4, 4), (6, 2, 3, 2), convolving((2, 2), (1, 1, 1, 1), groups=2)),
    ((1, 3, 3, 4), (8, 1, 1, 1), convolving(groups=4)),
    ((1, 2, 3, 3), (2, 1, 1, 3), convolving((2, 2))),
    ((1, 1, 6, 2), (2, 1, 4, 2), convolving((1, 1), (0, 0, 1, 2))),
    ((1, 2, 2, 1), (1, 3, 3, 1), convolving((1, 1), (3, 3, 3, 3))),
    ((1, 1, 1, 1), (1, 1, 1, 1), convolving()),
)
_TORCH = (
    "torch.nn.functional.conv2d(torch.nn.functional.pad({x}.permute(0, 3, 1, 2), padding[2:] + padding[:2]), "
    "{w}.permute(0, 3, 1, 2), None, stride, 0, dilation, groups).permute(0, 2, 3, 1)"
)


def _outputs(x: tuple[int, ...], w: tuple[int, ...], attrs: Attrs) -> tuple[int, ...]:
    return (x[0], *size_of((x[1], x[2]), (w[1], w[2]), attrs), w[0])


# conv2d: y[n, p, q, o] = sum of x[n, p sh - top + i dh, q sw - left + j dw, c] w[o, i, j, c]
conv2d, conv2d_dx, conv2d_dw, conv2d_dw_into = WindowProduct(
    "conv2d",
    attributes=("stride", "padding", "dilation", "groups"),
    window=image_size,
    infer=(_conv2d_type, _conv2d_dx_type, _conv2d_dw_type),
    ref=(_conv2d, _conv2d_dx, _conv2d_dw),
    rows=_ROWS,
    outputs=_outputs,
    torch=_TORCH,
    torch_x="a.shape[0], *size, b.shape[3] * groups",
    torch_w="b.shape[3], *kernel, a.shape[3] // groups",
    channels=lambda attrs: (3, 0) if attrs["groups"] == 1 else None,
).register()
