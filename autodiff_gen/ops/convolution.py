"""Convolution of images x[n, h, w, c] with w[o, kh, kw, c / groups], and its adjoints in each operand.

All three are linear in each operand and each is the adjoint of the others, so their VJPs close among themselves. A
transposed convolution is `conv2d_dx`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dtypes import Type
from ..errors import ShapeError
from ..ir import Value, apply
from ..kernel_calls import KernelCall, Operand, Result, Scalar
from ..layout import Strided, dense
from ..op import Attrs, Call, Op, Sample, register
from .support import same_dtype
from .windows import Padding, Pair, cropped, geometry, image, output_size, padded, pair_of, tap, with_size


def convolving(
    stride: Pair = (1, 1), padding: Padding = (0, 0, 0, 0), dilation: Pair = (1, 1), groups: int = 1
) -> dict[str, Any]:
    """The attributes that the three share; padding is top, bottom, left, right."""
    return {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}


def _out(size: Pair, kernel: Pair, attrs: Attrs) -> Pair:
    return output_size(size, kernel, attrs["stride"], attrs["padding"], attrs["dilation"])


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
    return Type(x.dtype, with_size(x.shape, _out((h, width), kernel, attrs), o))


def _check_gradient(dy: Type, size: Pair, kernel: Pair, o: int, attrs: Attrs) -> None:
    oh, ow, channels = image(dy)
    if (out := _out(size, kernel, attrs)) != (oh, ow) or channels != o:
        raise ShapeError(f"the result for an image of {list(size)} is [n, {out[0]}, {out[1]}, {o}]")


def _conv2d_dx_type(dy: Type, w: Type, *, size: Pair, **attrs: Any) -> Type:
    same_dtype(dy, w)
    o, kernel, c = _weights(w, attrs["groups"])
    _check_groups(c, o, attrs["groups"])
    _check_gradient(dy, size, kernel, o, attrs)
    return Type(dy.dtype, with_size(dy.shape, size, c))


def _conv2d_dw_type(x: Type, dy: Type, *, kernel: Pair, **attrs: Any) -> Type:
    same_dtype(x, dy)
    h, w, c = image(x)
    *_, o = image(dy)
    if x.shape[0] != dy.shape[0]:
        raise ShapeError(f"{x.shape[0]!r} images against {dy.shape[0]!r} gradients")
    _check_groups(c, o, attrs["groups"])
    _check_gradient(dy, (h, w), kernel, o, attrs)
    return Type(x.dtype, (o, *kernel, c // attrs["groups"]))


# Meaning


def _grouped(x: Any, groups: int) -> Any:
    """The last axis as [groups, channels of a group]."""
    return x.reshape(*x.shape[:-1], groups, -1)


def _filters(w: Any, groups: int) -> Any:
    """[o, kh, kw, c / groups] -> [groups, o / groups, kh, kw, c / groups]."""
    return w.reshape(groups, -1, *w.shape[1:])


def _conv2d(x: Any, w: Any, *, groups: int, **attrs: Any) -> Any:
    kernel, out = w.shape[1:3], _out(x.shape[1:3], w.shape[1:3], attrs)
    wide = _grouped(_padded(x, kernel, out, attrs), groups)
    filters = _filters(w, groups)
    y = np.zeros((x.shape[0], *out, groups, filters.shape[1]), x.dtype)
    for i, j in np.ndindex(*kernel):
        y += np.einsum("npqgc,goc->npqgo", wide[_tap(i, j, out, attrs)], filters[:, :, i, j])
    return y.reshape(*y.shape[:3], -1)


def _conv2d_dx(dy: Any, w: Any, *, size: Pair, groups: int, **attrs: Any) -> Any:
    kernel, out, filters = w.shape[1:3], dy.shape[1:3], _filters(w, groups)
    dx = np.zeros((dy.shape[0], *size, groups * w.shape[3]), dy.dtype)
    wide = _padded(dx, kernel, out, attrs)
    shares = _grouped(wide, groups)
    for i, j in np.ndindex(*kernel):
        shares[_tap(i, j, out, attrs)] += np.einsum(
            "npqgo,goc->npqgc", _grouped(dy, groups), filters[:, :, i, j]
        )
    return cropped(wide, size, attrs["padding"])


def _conv2d_dw(x: Any, dy: Any, *, kernel: Pair, groups: int, **attrs: Any) -> Any:
    out = dy.shape[1:3]
    wide = _grouped(_padded(x, kernel, out, attrs), groups)
    dw = np.zeros((groups, dy.shape[3] // groups, *kernel, x.shape[3] // groups), x.dtype)
    for i, j in np.ndindex(*kernel):
        dw[:, :, i, j] = np.einsum("npqgc,npqgo->goc", wide[_tap(i, j, out, attrs)], _grouped(dy, groups))
    return dw.reshape(-1, *dw.shape[2:])


def _padded(x: Any, kernel: Pair, out: Pair, attrs: Attrs) -> Any:
    return padded(x, kernel, attrs["stride"], attrs["padding"], attrs["dilation"], out, 0.0)


def _tap(i: int, j: int, out: Pair, attrs: Attrs) -> tuple[slice, slice, slice]:
    return tap(i, j, attrs["stride"], attrs["dilation"], out)


# Calls


def conv_shape(x: Strided, size: Pair, kernel: Pair, out: Pair, o: int, attrs: Attrs) -> dict[str, int]:
    """ag_conv2d_shape of a convolution of the image x, whatever is computed of it."""
    fields = geometry(x, size, kernel, attrs["stride"], attrs["padding"], attrs["dilation"], out)
    del fields["pad_bottom"], fields["pad_right"]
    c = x.shape[3]
    assert isinstance(c, int)
    return {**fields, "c": c, "o": o, "groups": attrs.get("groups", c), "ldy": o}


def _conv2d_call(layouts: Sequence[Strided], results: Sequence[Type], attrs: Attrs) -> KernelCall:
    (x, w), (y,) = layouts, results
    shape = conv_shape(x, pair_of(x.shape), pair_of(w.shape), pair_of(y.shape), _last(y.shape), attrs)
    pointers = {"x": Operand(0), "w": Operand(1), "y": Result()}
    return KernelCall("conv2d_f32", pointers, {"n": x.shape[0]}, shape=shape)


def _conv2d_dx_call(layouts: Sequence[Strided], results: Sequence[Type], attrs: Attrs) -> KernelCall:
    (dy, w), (dx,) = layouts, results
    at = dense(dx.shape)
    shape = conv_shape(at, attrs["size"], pair_of(w.shape), pair_of(dy.shape), _last(dy.shape), attrs)
    pointers = {"dy": Operand(0), "w": Operand(1), "dx": Result()}
    return KernelCall("conv2d_dx_f32", pointers, {"n": dy.shape[0]}, shape=shape)


def _conv2d_dw_call(layouts: Sequence[Strided], results: Sequence[Type], attrs: Attrs) -> KernelCall:
    x, dy = layouts[:2]
    shape = conv_shape(x, pair_of(x.shape), attrs["kernel"], pair_of(dy.shape), _last(dy.shape), attrs)
    pointers = {"x": Operand(0), "dy": Operand(1), "dw": Result()}
    return KernelCall("conv2d_dw_f32", pointers, {"n": x.shape[0]}, factors_of(attrs), shape)


def factors_of(attrs: Attrs, scalar: int = 3) -> dict[str, Any]:
    """alpha and beta of a kernel that adds: 1 and 0, or those of an op that adds operand `scalar` times its term."""
    if "beta" not in attrs:
        return {"alpha": 1.0, "beta": 0.0}
    return {"alpha": Scalar(scalar, attrs["negate"]), "beta": attrs["beta"]}


def _last(shape: Any) -> int:
    assert isinstance(shape[-1], int)
    return shape[-1]


# Gradients


def _shared(attrs: Attrs) -> dict[str, Any]:
    return {k: attrs[k] for k in ("stride", "padding", "dilation", "groups")}


def _conv2d_vjp(
    dys: Sequence[Value | None],
    inputs: Sequence[Value],
    outs: Sequence[Value],
    attrs: Attrs,
    wanted: Sequence[bool],
) -> list[Value | None]:
    (dy,), (x, w) = dys, inputs
    return [
        apply("conv2d_dx", dy, w, size=x.type.shape[1:3], **attrs) if wanted[0] else None,
        apply("conv2d_dw", x, dy, kernel=w.type.shape[1:3], **attrs) if wanted[1] else None,
    ]


def _conv2d_dx_vjp(
    dys: Sequence[Value | None],
    inputs: Sequence[Value],
    outs: Sequence[Value],
    attrs: Attrs,
    wanted: Sequence[bool],
) -> list[Value | None]:
    (g,), (dy, w) = dys, inputs
    shared = _shared(attrs)
    return [
        apply("conv2d", g, w, **shared) if wanted[0] else None,
        apply("conv2d_dw", g, dy, kernel=w.type.shape[1:3], **shared) if wanted[1] else None,
    ]


def _conv2d_dw_vjp(
    dys: Sequence[Value | None],
    inputs: Sequence[Value],
    outs: Sequence[Value],
    attrs: Attrs,
    wanted: Sequence[bool],
) -> list[Value | None]:
    (g,), (x, dy) = dys, inputs
    shared = _shared(attrs)
    return [
        apply("conv2d_dx", dy, g, size=x.type.shape[1:3], **shared) if wanted[0] else None,
        apply("conv2d", x, g, **shared) if wanted[1] else None,
    ]


# Records. Samples: image, weights, attributes.

_ROWS: tuple[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]], ...] = (
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
    return (x[0], *_out((x[1], x[2]), (w[1], w[2]), attrs), w[0])


conv2d = register(
    Op(
        "conv2d",  # y[n, p, q, o] = sum of x[n, p sh - top + i dh, q sw - left + j dw, c] w[o, i, j, c]
        infer=_conv2d_type,
        ref=_conv2d,
        vjp=_conv2d_vjp,
        lower=Call(_conv2d_call, strided=(0,)),
        samples=tuple(Sample((x, w), attrs) for x, w, attrs in _ROWS),
        torch=_TORCH.format(x="a", w="b"),
    )
)

conv2d_dx = register(
    Op(
        "conv2d_dx",  # dx[n, h, w, c] of conv2d, from dy[n, oh, ow, o] and w
        infer=_conv2d_dx_type,
        ref=_conv2d_dx,
        vjp=_conv2d_dx_vjp,
        lower=Call(_conv2d_dx_call),
        samples=tuple(Sample((_outputs(x, w, a), w), {**a, "size": x[1:3]}) for x, w, a in _ROWS),
        torch=f"(lambda x: torch.autograd.grad({_TORCH.format(x='x', w='b')}, x, a, create_graph=True)[0])("
        "torch.zeros(a.shape[0], *size, b.shape[3] * groups, dtype=a.dtype, requires_grad=True))",
    )
)

conv2d_dw = register(
    Op(
        "conv2d_dw",  # dw[o, kh, kw, c / groups] of conv2d, from x and dy[n, oh, ow, o]
        infer=_conv2d_dw_type,
        ref=_conv2d_dw,
        vjp=_conv2d_dw_vjp,
        lower=Call(_conv2d_dw_call, strided=(0,), added="conv2d_dw_into", summed=(0, 1)),
        samples=tuple(Sample((x, _outputs(x, w, a)), {**a, "kernel": w[1:3]}) for x, w, a in _ROWS),
        torch=f"(lambda w: torch.autograd.grad({_TORCH.format(x='a', w='w')}, w, b, create_graph=True)[0])("
        "torch.zeros(b.shape[3], *kernel, a.shape[3] // groups, dtype=a.dtype, requires_grad=True))",
    )
)


def _into_type(x: Type, dy: Type, old: Type, alpha: Type, *, beta: float, negate: bool, **attrs: Any) -> Type:
    dw = _conv2d_dw_type(x, dy, **attrs)
    if dw != old or alpha != Type(old.dtype, ()):
        raise ShapeError(f"adds {dw} times a scalar to {old}")
    return dw


conv2d_dw_into = register(
    Op(
        "conv2d_dw_into",  # (+ or -) alpha conv2d_dw(x, dy) + beta old; made by the pass that fuses updates
        infer=_into_type,
        ref=lambda x, dy, old, alpha, *, beta, negate, **attrs: (
            (-alpha if negate else alpha) * _conv2d_dw(x, dy, **attrs) + old.dtype.type(beta) * old
        ),
        vjp=None,
        lower=Call(_conv2d_dw_call, strided=(0,), scalars=(3,), into=2, term="conv2d_dw", summed=(0, 1)),
    )
)
