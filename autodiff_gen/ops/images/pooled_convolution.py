"""Convolution, bias and max pooling as one op: the convolution's result is never stored, and gradients propagate only
through the chosen elements. Created by the pass fuse_calls, after differentiation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...errors import ShapeError
from ...ir.kernel_call import KernelCall, Operand, Result
from ...ir.node import OPS, Sample, define
from ...ir.op_forms import TwoOpsInOne
from ...ir.op_kinds import Attrs, KernelOp
from ...ir.strides import Strided, dense
from ...ir.types import Shape, Size, Type, planned
from ...ir.windows import CutWindows, Windows
from ..add_to_memory import OVERWRITES, register_added
from .convolution import convolving
from .max_pooling import pooling
from .window_products import conv_shape, macs, size_of
from .windows import Pair, image_size, output_size


def _parts(attrs: Attrs) -> tuple[dict[str, Any], dict[str, Any]]:
    """The attributes of conv2d and of max_pool2d."""
    conv = {k: attrs[k] for k in ("stride", "padding", "dilation", "groups")}
    return conv, {k.removeprefix("pool_"): v for k, v in attrs.items() if k.startswith("pool_")}


def _joined(conv: Attrs, pool: Attrs) -> dict[str, Any] | None:
    """The attributes of both; None unless the convolution has one group, and the pooling windows do not overlap and
    have neither padding nor dilation."""
    apart = all(s >= k for s, k in zip(pool["stride"], pool["kernel"], strict=True))
    if not apart or pool["dilation"] != (1, 1) or any(pool["padding"]) or conv["groups"] != 1:
        return None
    own = {k: v for k, v in conv.items() if k in ("size", "kernel")}  # of gradients
    shared = {k: conv[k] for k in ("stride", "padding", "dilation", "groups")}
    return own | shared | {f"pool_{k}": v for k, v in pool.items() if k != "size"}


def _result_type(name: str, *types: Type, **attrs: Any) -> Type:
    """The type of an op with one result."""
    result = OPS[name].infer(*types, **attrs)
    assert isinstance(result, Type)
    return result


def _pool_type(x: Type, w: Type, bias: Type, **attrs: Any) -> tuple[Type, ...]:
    conv, pool = _parts(attrs)
    if bias != Type(w.dtype, w.shape[:1]):
        raise ShapeError(f"the bias must be {Type(w.dtype, w.shape[:1])}")
    results = OPS["max_pool2d"].infer(_result_type("conv2d", x, w, **conv), **pool)
    assert isinstance(results, tuple)
    return results


def _dx_type(dy: Type, index: Type, w: Type, *, size: Pair, **attrs: Any) -> Type:
    conv, pool = _parts(attrs)
    inner = size_of(size, image_size(w.shape), attrs)
    pooled = _result_type("max_pool2d_dx", dy, index, size=inner, **pool)
    return _result_type("conv2d_dx", pooled, w, size=size, **conv)


def _dw_type(x: Type, dy: Type, index: Type, *, kernel: Pair, **attrs: Any) -> Type:
    conv, pool = _parts(attrs)
    inner = size_of(image_size(x.shape), kernel, attrs)
    pooled = _result_type("max_pool2d_dx", dy, index, size=inner, **pool)
    return _result_type("conv2d_dw", x, pooled, kernel=kernel, **conv)


def _pool(x: Any, w: Any, bias: Any, **attrs: Any) -> Any:
    conv, pool = _parts(attrs)
    return OPS["max_pool2d"].ref(OPS["conv2d"].ref(x, w, **conv) + bias, **pool)


def _dx(dy: Any, index: Any, w: Any, *, size: Pair, **attrs: Any) -> Any:
    conv, pool = _parts(attrs)
    inner = OPS["max_pool2d_dx"].ref(dy, index, size=size_of(size, w.shape[1:3], attrs), **pool)
    return OPS["conv2d_dx"].ref(inner, w, size=size, **conv)


def _dw(x: Any, dy: Any, index: Any, *, kernel: Pair, **attrs: Any) -> Any:
    conv, pool = _parts(attrs)
    inner = OPS["max_pool2d_dx"].ref(dy, index, size=size_of(x.shape[1:3], kernel, attrs), **pool)
    return OPS["conv2d_dw"].ref(x, inner, kernel=kernel, **conv)


def _shape(x: Strided, size: Pair, kernel: Pair, y: Type, attrs: Attrs) -> dict[str, int]:
    ph, pw = image_size(y.shape)
    o = y.shape[3]
    assert isinstance(o, int)
    fields = conv_shape(x, size, kernel, size_of(size, kernel, attrs), o, attrs)
    del fields["groups"], fields["ldy"]
    for name in ("kernel", "stride"):
        tag = "pool" if name == "kernel" else "pool_stride"
        fields |= {f"{tag}_{axis}": k for axis, k in zip("hw", attrs[f"pool_{name}"], strict=True)}
    return fields | {"ph": ph, "pw": pw}


def _pool_call(layouts: Sequence[Strided], results: Sequence[Type], attrs: Attrs) -> KernelCall:
    (x, w, _), (y, _) = layouts, results
    shape = _shape(x, image_size(x.shape), image_size(w.shape), y, attrs)
    operands = {"x": Operand(0), "w": Operand(1), "bias": Operand(2)}
    pointers = {**operands, "y": Result(0), "index": Result(1)}
    return KernelCall("conv2d_pool_f32", pointers, {"n": x.shape[0]}, shape=shape)


def _dx_call(layouts: Sequence[Strided], results: Sequence[Type], attrs: Attrs) -> KernelCall:
    (dy, _, w), (dx,) = layouts, results
    shape = _shape(dense(dx.shape), attrs["size"], image_size(w.shape), Type(dx.dtype, dy.shape), attrs)
    pointers = {"dy": Operand(0), "index": Operand(1), "w": Operand(2), "dx": Result()}
    return KernelCall("conv2d_pool_dx_f32", pointers, {"n": dy.shape[0]}, shape=shape)


def _dw_call(layouts: Sequence[Strided], results: Sequence[Type], attrs: Attrs) -> KernelCall:
    (x, dy, _), (dw,) = layouts, results
    shape = _shape(x, image_size(x.shape), attrs["kernel"], Type(dw.dtype, dy.shape), attrs)
    pointers = {"x": Operand(0), "dy": Operand(1), "index": Operand(2), "dw": Result()}
    return KernelCall("conv2d_pool_dw_f32", pointers, {"n": x.shape[0]}, OVERWRITES, shape)


def _pooled_macs(call: KernelCall) -> int:
    """The multiply-accumulates of a gradient: one convolution window for each element of the pooled result."""
    return macs(call, "ph", "pw")


def _windows(image: Shape, kernel: Pair, outputs: Size, attrs: Attrs, is_gradient: bool) -> Windows:
    """The windows, and the cost of those that the border of the image cuts. If one of the convolution windows of a
    pooled pixel is cut, kernels compute the pixel element by element: its value by a product of vectors for each row of
    each window, its gradient by a sum for each output. Pooling windows are never cut, because pooling with padding is
    not joined with a convolution."""
    (channels, count), size = planned((image[-1], outputs)), image_size(image)
    conv = size_of(size, kernel, attrs)
    _, pool = _parts(attrs)
    pooled = output_size(conv, **pool)
    inside, taps = [], []
    for axis in range(2):
        stride, dilation, before = (
            attrs[k][i] for k, i in (("stride", axis), ("dilation", axis), ("padding", 2 * axis))
        )
        valid = [
            sum(0 <= w * stride - before + t * dilation < size[axis] for t in range(kernel[axis]))
            for w in range(conv[axis])
        ]
        step, width = pool["stride"][axis], pool["kernel"][axis]
        windows = (valid[p * step : p * step + width] for p in range(pooled[axis]))
        inside.append(sum(set(counts) == {kernel[axis]} for counts in windows))
        taps.append(sum(valid))
    cut, elements = math.prod(pooled) - math.prod(inside), math.prod(pool["kernel"])
    terms = (math.prod(conv) * math.prod(kernel) - math.prod(taps)) * channels * count
    if is_gradient:  # it has only the window of the largest element
        return Windows(0, kernel, cut=CutWindows(cut * count, terms // elements))
    return Windows(0, kernel, cut=CutWindows(cut * elements * kernel[0], terms))


def _windows_of_product(shapes: Sequence[Shape], attrs: Attrs) -> Windows:
    x, w = shapes[:2]
    return _windows(x, image_size(w), w[0], attrs, False)


def _windows_of_gradient(shapes: Sequence[Shape], attrs: Attrs) -> Windows:
    x, dy = shapes[:2]
    return _windows(x, attrs["kernel"], dy[-1], attrs, True)


# image, weights, pooled result, attributes
_ROWS: tuple[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], dict[str, Any]], ...] = tuple(
    (x, w, y, {**conv, **{f"pool_{k}": v for k, v in pool.items()}})
    for x, w, y, conv, pool in (
        ((2, 9, 8, 3), (4, 3, 2, 3), (2, 3, 3, 4), convolving(), pooling((2, 2), (2, 2))),
        ((1, 12, 12, 1), (6, 5, 5, 1), (1, 4, 4, 6), convolving(), pooling((2, 2), (2, 2))),
        ((2, 7, 8, 2), (3, 3, 3, 2), (2, 2, 2, 3), convolving((2, 1), (1, 1, 1, 1)), pooling((2, 3), (2, 3))),
        (
            (1, 9, 9, 2),
            (5, 2, 3, 2),
            (1, 2, 5, 5),
            convolving((1, 1), (0, 2, 1, 2), (2, 1)),
            pooling((2, 2), (4, 2)),
        ),
        ((1, 1, 1, 1), (1, 1, 1, 1), (1, 1, 1, 1), convolving(), pooling((1, 1), (1, 1))),
    )
)


def _indexed(shapes: tuple[tuple[int, ...], ...], index: int, attrs: dict[str, Any]) -> Sample:
    rows, columns = attrs["pool_kernel"]
    return Sample(shapes, attrs, dtypes={index: "u8"}, high=rows * columns)


conv2d_pool = define(
    "conv2d_pool",  # y[n, ph, pw, o], index = max_pool2d(conv2d(x, w) + bias)
    infer=_pool_type,
    ref=_pool,
    vjp=None,
    lower=KernelOp(_pool_call, macs, strided=(0,)),
    samples=tuple(Sample((x, w, w[:1]), attrs) for x, w, _, attrs in _ROWS),
    form=TwoOpsInOne("max_pool2d", "conv2d", 0, _joined, biased=True),
    windows=_windows_of_product,
)

conv2d_pool_dx = define(
    "conv2d_pool_dx",  # dx[n, h, w, c] = conv2d_dx(max_pool2d_dx(dy, index), w)
    infer=_dx_type,
    ref=_dx,
    vjp=None,
    lower=KernelOp(_dx_call, _pooled_macs),
    samples=tuple(_indexed((y, y, w), 1, {**a, "size": x[1:3]}) for x, w, y, a in _ROWS),
    form=TwoOpsInOne("conv2d_dx", "max_pool2d_dx", 0, lambda pool, conv: _joined(conv, pool)),
)

conv2d_pool_dw = define(
    "conv2d_pool_dw",  # dw[o, kh, kw, c] = conv2d_dw(x, max_pool2d_dx(dy, index))
    infer=_dw_type,
    ref=_dw,
    vjp=None,
    lower=KernelOp(_dw_call, _pooled_macs, strided=(0,), summed=(0, 1)),
    samples=tuple(_indexed((x, y, y), 2, {**a, "kernel": w[1:3]}) for x, w, y, a in _ROWS),
    form=TwoOpsInOne("conv2d_dw", "max_pool2d_dx", 1, lambda pool, conv: _joined(conv, pool)),
    windows=_windows_of_gradient,
)

conv2d_pool_dw_into = register_added("conv2d_pool_dw_into", conv2d_pool_dw)
