"""Depthwise convolution: every channel of x[n, h, w, c] with a window of its own, w[kh, kw, c]; and its adjoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dtypes import Type
from ..errors import ShapeError
from ..ir import Value, apply
from ..kernel_calls import KernelCall, Operand, Result
from ..layout import Strided, dense
from ..op import Attrs, Call, Op, Sample, register
from .convolution import conv_shape, factors_of
from .support import same_dtype
from .windows import Padding, Pair, cropped, image, output_size, padded, pair_of, tap, with_size


def depthwise(
    stride: Pair = (1, 1), padding: Padding = (0, 0, 0, 0), dilation: Pair = (1, 1)
) -> dict[str, Any]:
    """The attributes that the three share; padding is top, bottom, left, right."""
    return {"stride": stride, "padding": padding, "dilation": dilation}


def _out(size: Pair, kernel: Pair, attrs: Attrs) -> Pair:
    return output_size(size, kernel, attrs["stride"], attrs["padding"], attrs["dilation"])


def _window(w: Type, c: int) -> Pair:
    if len(w.shape) != 3 or w.shape[2] != c:
        raise ShapeError(f"the weights must be [kh, kw, {c}]")
    kh, kw = w.shape[:2]
    assert isinstance(kh, int) and isinstance(kw, int)
    return kh, kw


def _depthwise_type(x: Type, w: Type, **attrs: Any) -> Type:
    same_dtype(x, w)
    h, width, c = image(x)
    return Type(x.dtype, with_size(x.shape, _out((h, width), _window(w, c), attrs), c))


def _check_gradient(dy: Type, size: Pair, kernel: Pair, attrs: Attrs) -> int:
    oh, ow, c = image(dy)
    if (out := _out(size, kernel, attrs)) != (oh, ow):
        raise ShapeError(f"the result for an image of {list(size)} is [n, {out[0]}, {out[1]}, {c}]")
    return c


def _depthwise_dx_type(dy: Type, w: Type, *, size: Pair, **attrs: Any) -> Type:
    same_dtype(dy, w)
    *_, c = image(dy)
    _check_gradient(dy, size, _window(w, c), attrs)
    return Type(dy.dtype, with_size(dy.shape, size, c))


def _depthwise_dw_type(x: Type, dy: Type, *, kernel: Pair, **attrs: Any) -> Type:
    same_dtype(x, dy)
    h, w, c = image(x)
    if x.shape[0] != dy.shape[0] or _check_gradient(dy, (h, w), kernel, attrs) != c:
        raise ShapeError("images and channels of both operands must be as many")
    return Type(x.dtype, (*kernel, c))


def _padded(x: Any, kernel: Pair, out: Pair, attrs: Attrs) -> Any:
    return padded(x, kernel, attrs["stride"], attrs["padding"], attrs["dilation"], out, 0.0)


def _tap(i: int, j: int, out: Pair, attrs: Attrs) -> tuple[slice, slice, slice]:
    return tap(i, j, attrs["stride"], attrs["dilation"], out)


def _depthwise(x: Any, w: Any, **attrs: Any) -> Any:
    kernel, out = w.shape[:2], _out(x.shape[1:3], w.shape[:2], attrs)
    wide = _padded(x, kernel, out, attrs)
    y = np.zeros((x.shape[0], *out, x.shape[3]), x.dtype)
    for i, j in np.ndindex(*kernel):
        y += wide[_tap(i, j, out, attrs)] * w[i, j]
    return y


def _depthwise_dx(dy: Any, w: Any, *, size: Pair, **attrs: Any) -> Any:
    kernel, out = w.shape[:2], dy.shape[1:3]
    wide = _padded(np.zeros((dy.shape[0], *size, dy.shape[3]), dy.dtype), kernel, out, attrs)
    for i, j in np.ndindex(*kernel):
        wide[_tap(i, j, out, attrs)] += dy * w[i, j]
    return cropped(wide, size, attrs["padding"])


def _depthwise_dw(x: Any, dy: Any, *, kernel: Pair, **attrs: Any) -> Any:
    out = dy.shape[1:3]
    wide = _padded(x, kernel, out, attrs)
    dw = np.zeros((*kernel, x.shape[3]), x.dtype)
    for i, j in np.ndindex(*kernel):
        dw[i, j] = np.einsum("npqc,npqc->c", wide[_tap(i, j, out, attrs)], dy)
    return dw


def _depthwise_call(layouts: Sequence[Strided], results: Sequence[Type], attrs: Attrs) -> KernelCall:
    (x, w), (y,) = layouts, results
    kernel = (w.shape[0], w.shape[1])
    shape = _shape(x, pair_of(x.shape), kernel, pair_of(y.shape), attrs)
    pointers = {"x": Operand(0), "w": Operand(1), "y": Result()}
    return KernelCall("depthwise2d_f32", pointers, {"n": x.shape[0]}, shape=shape)


def _depthwise_dx_call(layouts: Sequence[Strided], results: Sequence[Type], attrs: Attrs) -> KernelCall:
    (dy, w), (dx,) = layouts, results
    kernel = (w.shape[0], w.shape[1])
    shape = _shape(dense(dx.shape), attrs["size"], kernel, pair_of(dy.shape), attrs)
    pointers = {"dy": Operand(0), "w": Operand(1), "dx": Result()}
    return KernelCall("depthwise2d_dx_f32", pointers, {"n": dy.shape[0]}, shape=shape)


def _depthwise_dw_call(layouts: Sequence[Strided], results: Sequence[Type], attrs: Attrs) -> KernelCall:
    x, dy = layouts[:2]
    shape = _shape(x, pair_of(x.shape), attrs["kernel"], pair_of(dy.shape), attrs)
    pointers = {"x": Operand(0), "dy": Operand(1), "dw": Result()}
    return KernelCall("depthwise2d_dw_f32", pointers, {"n": x.shape[0]}, factors_of(attrs), shape)


def _shape(x: Strided, size: Pair, kernel: Any, out: Pair, attrs: Attrs) -> dict[str, int]:
    c = x.shape[3]
    assert isinstance(c, int)
    return conv_shape(x, size, kernel, out, c, attrs)


def _shared(attrs: Attrs) -> dict[str, Any]:
    return {k: attrs[k] for k in ("stride", "padding", "dilation")}


def _depthwise_vjp(
    dys: Sequence[Value | None],
    inputs: Sequence[Value],
    outs: Sequence[Value],
    attrs: Attrs,
    wanted: Sequence[bool],
) -> list[Value | None]:
    (dy,), (x, w) = dys, inputs
    return [
        apply("depthwise2d_dx", dy, w, size=x.type.shape[1:3], **attrs) if wanted[0] else None,
        apply("depthwise2d_dw", x, dy, kernel=w.type.shape[:2], **attrs) if wanted[1] else None,
    ]


def _depthwise_dx_vjp(
    dys: Sequence[Value | None],
    inputs: Sequence[Value],
    outs: Sequence[Value],
    attrs: Attrs,
    wanted: Sequence[bool],
) -> list[Value | None]:
    (g,), (dy, w) = dys, inputs
    shared = _shared(attrs)
    return [
        apply("depthwise2d", g, w, **shared) if wanted[0] else None,
        apply("depthwise2d_dw", g, dy, kernel=w.type.shape[:2], **shared) if wanted[1] else None,
    ]


def _depthwise_dw_vjp(
    dys: Sequence[Value | None],
    inputs: Sequence[Value],
    outs: Sequence[Value],
    attrs: Attrs,
    wanted: Sequence[bool],
) -> list[Value | None]:
    (g,), (x, dy) = dys, inputs
    shared = _shared(attrs)
    return [
        apply("depthwise2d_dx", dy, g, size=x.type.shape[1:3], **shared) if wanted[0] else None,
        apply("depthwise2d", x, g, **shared) if wanted[1] else None,
    ]


_ROWS: tuple[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]], ...] = (
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
    return (x[0], *_out((x[1], x[2]), (w[0], w[1]), attrs), x[3])


depthwise2d = register(
    Op(
        "depthwise2d",  # y[n, p, q, c] = sum of x[n, p sh - top + i dh, q sw - left + j dw, c] w[i, j, c]
        infer=_depthwise_type,
        ref=_depthwise,
        vjp=_depthwise_vjp,
        lower=Call(_depthwise_call, strided=(0,)),
        samples=tuple(Sample((x, w), attrs) for x, w, attrs in _ROWS),
        torch=_TORCH.format(x="a", w="b"),
    )
)

depthwise2d_dx = register(
    Op(
        "depthwise2d_dx",  # dx[n, h, w, c] of depthwise2d, from dy[n, oh, ow, c] and w
        infer=_depthwise_dx_type,
        ref=_depthwise_dx,
        vjp=_depthwise_dx_vjp,
        lower=Call(_depthwise_dx_call),
        samples=tuple(Sample((_outputs(x, w, a), w), {**a, "size": x[1:3]}) for x, w, a in _ROWS),
        torch=f"(lambda x: torch.autograd.grad({_TORCH.format(x='x', w='b')}, x, a, create_graph=True)[0])("
        "torch.zeros(a.shape[0], *size, a.shape[3], dtype=a.dtype, requires_grad=True))",
    )
)

depthwise2d_dw = register(
    Op(
        "depthwise2d_dw",  # dw[kh, kw, c] of depthwise2d, from x and dy[n, oh, ow, c]
        infer=_depthwise_dw_type,
        ref=_depthwise_dw,
        vjp=_depthwise_dw_vjp,
        lower=Call(_depthwise_dw_call, strided=(0,), added="depthwise2d_dw_into", summed=(0, 1)),
        samples=tuple(Sample((x, _outputs(x, w, a)), {**a, "kernel": w[:2]}) for x, w, a in _ROWS),
        torch=f"(lambda w: torch.autograd.grad({_TORCH.format(x='a', w='w')}, w, b, create_graph=True)[0])("
        "torch.zeros(*kernel, a.shape[3], dtype=a.dtype, requires_grad=True))",
    )
)


def _into_type(x: Type, dy: Type, old: Type, alpha: Type, *, beta: float, negate: bool, **attrs: Any) -> Type:
    dw = _depthwise_dw_type(x, dy, **attrs)
    if dw != old or alpha != Type(old.dtype, ()):
        raise ShapeError(f"adds {dw} times a scalar to {old}")
    return dw


depthwise2d_dw_into = register(
    Op(
        "depthwise2d_dw_into",  # (+ or -) alpha depthwise2d_dw(x, dy) + beta old; made by the pass that fuses updates
        infer=_into_type,
        ref=lambda x, dy, old, alpha, *, beta, negate, **attrs: (
            (-alpha if negate else alpha) * _depthwise_dw(x, dy, **attrs) + old.dtype.type(beta) * old
        ),
        vjp=None,
        lower=Call(
            _depthwise_dw_call, strided=(0,), scalars=(3,), into=2, term="depthwise2d_dw", summed=(0, 1)
        ),
    )
)
