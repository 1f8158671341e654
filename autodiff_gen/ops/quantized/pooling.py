"""Average and max pooling of quantised images x[n, h, w, c]; the result has the quantisation of x. Results are limited
to low to high, and are equal to the last bit in NumPy and on every core."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...ir.build import apply, apply_node, constant
from ...ir.kernel_call import KernelCall, Operand, Result
from ...ir.node import Op, OptionalValues, Sample, Value, Values, Wanted, define
from ...ir.op_kinds import Attrs, KernelOp
from ...ir.quantization import HIGH, LOW
from ...ir.strides import Strided
from ...ir.types import Type, s8
from ..images.avg_pooling import averaging
from ..images.max_pooling import pooling
from ..images.window_tiles import of_image
from ..images.windows import (
    Padding,
    Pair,
    geometry,
    image_axes,
    image_shape,
    image_size,
    output_size,
    padded,
    tap,
)
from .limits import Gradients, is_s8, through_limits

_DENSE = (1, 1)  # dilation


def pooling_s8(
    kernel: Pair, stride: Pair, padding: Padding = (0, 0, 0, 0), low: int = LOW, high: int = HIGH
) -> dict[str, Any]:
    """The attributes of both ops; padding is top, bottom, left, right."""
    return {"kernel": kernel, "stride": stride, "padding": padding, "low": low, "high": high}


def _out(size: Pair, attrs: Attrs) -> Pair:
    kernel, padding = attrs["kernel"], attrs["padding"]
    if any(p > kernel[k // 2] // 2 for k, p in enumerate(padding)):
        raise ShapeError(f"padding={tuple(padding)} is more than half of kernel_size={tuple(kernel)}")
    return output_size(size, kernel, attrs["stride"], padding, _DENSE)


def _type(x: Type, **attrs: Any) -> Type:
    is_s8(x)
    h, w, c = image_axes(x)
    return Type(s8, image_shape(x.shape, _out((h, w), attrs), c), x.quantization)


def _elements(x: Any, attrs: Attrs) -> tuple[list[Any], list[Any]]:
    """Each element of all windows, and whether it is inside the image."""
    kernel, stride = attrs["kernel"], attrs["stride"]
    out = _out(x.shape[1:3], attrs)
    wide = padded(x.astype(np.int64), kernel, stride, attrs["padding"], _DENSE, out, LOW)
    inside = padded(np.ones(x.shape, np.int64), kernel, stride, attrs["padding"], _DENSE, out, 0)
    taps = [tap(i, j, stride, _DENSE, out) for i, j in np.ndindex(*kernel)]
    return [wide[t] for t in taps], [inside[t] for t in taps]


def _avg(x: Any, **attrs: Any) -> Any:
    elements, inside = _elements(x, attrs)
    count = sum(inside)
    total = sum(e * i for e, i in zip(elements, inside, strict=True))
    half = np.where(total > 0, count // 2, -(count // 2))
    mean = np.sign(total + half) * (np.abs(total + half) // count)
    return np.clip(mean, attrs["low"], attrs["high"]).astype(np.int8)


def _max(x: Any, **attrs: Any) -> Any:
    largest = np.max(np.stack(_elements(x, attrs)[0]), axis=0)
    return np.clip(largest, attrs["low"], attrs["high"]).astype(np.int8)


def _call(kernel: str, layouts: Sequence[Strided], results: Sequence[Type], attrs: Attrs) -> KernelCall:
    (x,), (y,) = layouts, results
    fields = geometry(
        x,
        image_size(x.shape),
        attrs["kernel"],
        attrs["stride"],
        attrs["padding"],
        _DENSE,
        image_size(y.shape),
    )
    c = x.shape[3]
    assert isinstance(c, int)
    numbers = {"n": x.shape[0], "low": attrs["low"], "high": attrs["high"]}
    shape = {**fields, "c": c, "divisor": 0, "count_pad": 0}
    return KernelCall(kernel, {"x": Operand(0), "y": Result()}, numbers, shape=shape)


_ROWS: tuple[tuple[tuple[int, ...], dict[str, Any]], ...] = (
    ((2, 4, 6, 3), pooling_s8((2, 2), (2, 2))),
    ((1, 5, 4, 2), pooling_s8((3, 2), (1, 2), (1, 1, 1, 1), low=5, high=60)),
    ((1, 4, 3, 5), pooling_s8((4, 3), (1, 1))),
)


def _avg_gradients(g: Value, inputs: Values, attrs: Attrs, wanted: Wanted) -> OptionalValues:
    means = averaging(attrs["kernel"], attrs["stride"], attrs["padding"], count_include_pad=False)
    return [apply("avg_pool2d_dx", g, size=inputs[0].type.shape[1:3], **means)]


def _max_gradients(g: Value, inputs: Values, attrs: Attrs, wanted: Wanted) -> OptionalValues:
    """The positions of the largest elements are computed again from x."""
    windows = pooling(attrs["kernel"], attrs["stride"], attrs["padding"])
    numbers = apply("dequantize", inputs[0], constant(1.0), zero=0)
    index = apply_node("max_pool2d", numbers, **windows).results[1]
    return [apply("max_pool2d_dx", g, index, size=inputs[0].type.shape[1:3], **windows)]


def _pool(name: str, ref: Callable[..., Any], gradients: Gradients) -> Op:
    samples = tuple(
        Sample((x,), attrs, dtypes={0: "s8"}, integers={0: (LOW, HIGH + 1)}) for x, attrs in _ROWS
    )
    lower = KernelOp(partial(_call, name), strided=(0,), tile=of_image)
    return define(name, _type, ref, through_limits(gradients, of_s8=True), lower, samples)


avg_pool2d_s8 = _pool("avg_pool2d_s8", _avg, _avg_gradients)
max_pool2d_s8 = _pool("max_pool2d_s8", _max, _max_gradients)
