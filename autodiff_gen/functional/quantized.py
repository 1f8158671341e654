"""Functions of quantised tensors: 8-bit integers that represent scale * (q - zero_point), with 32-bit sums.

Images are [N, C, H, W], as in torch.nn.functional. `scale` and `zero_point` belong to the result, which is limited
to the integers from `low` to `high`: an activation such as ReLU6 is part of the op before it. Results are equal to the
last bit in NumPy and in C on every core; the rounding is CMSIS-NN's.

clamp_gradient: with "open", no gradient passes a result that equals a limit. With "closed", no gradient passes a result
that was beyond a limit before it was limited; for this the forward pass stores one bit per element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.build import apply, constant
from ..ir.node import Value
from ..ir.quantization import (
    HIGH,
    LOW,
    check_bits,
    fixed_point,
)
from ..ir.types import f32, planned, s8
from ..ops.quantized.limits import OPEN, with_convention
from ..ops.quantized.pooling import pooling_s8
from ..ops.quantized.softmax import softmax_s8
from .arguments import TensorLike, as_value, axis_of, shape_error
from .quantized_arguments import (
    check_convention,
    check_limits,
    limited_op,
    quantization_of,
    quantized_operand,
    result_attributes,
    weight_arrays,
    weight_quantization,
)
from .quantized_operands import checked, product_operands, stored_filters
from .slicing import whole
from .windows import Images, Numbers, applied, images, on_both_sides, pair

__all__ = [
    "dequantize",
    "quantize",
    "quantized_add",
    "quantized_avg_pool2d",
    "quantized_conv2d",
    "quantized_linear",
    "quantized_max_pool2d",
    "quantized_mul",
    "quantized_softmax",
    "quantized_sub",
    "quantized_weight",
]

_MORE_BITS = 20  # the shift of the terms of a sum before they are brought to a common scale


def quantize(input: TensorLike, scale: TensorLike, zero_point: int = 0, axis: int | None = None) -> Value:
    """f32 -> s8: round(input / scale) + zero_point, halves to even, limited to -128 to 127; NaN becomes -128. scale: a
    number, or with `axis` one for each element along that axis, which excludes a zero_point. Gradients pass where the
    integer before the limit is in -128 to 127."""
    x = as_value(input)
    if axis is None:
        of = quantization_of("quantize", scale, zero_point)
    else:
        if zero_point != 0:
            raise shape_error("quantize", [x], f"zero_point={zero_point!r} needs one scale, without axis")
        at = axis_of("quantize", x, axis)
        of = weight_quantization("quantize", scale, at, planned(x.shape)[at])
    inverse = _factors(1.0 / of.along(planned(x.shape)))
    return apply("quantize", x, inverse, zero=of.zero_point, quantization=of)


def dequantize(input: TensorLike) -> Value:
    """s8 -> f32: scale * (input - zero_point)."""
    x = as_value(input)
    own = x.type.quantization
    of = quantized_operand("dequantize", x, own.axis if own else None)
    return apply("dequantize", x, _factors(of.along(planned(x.shape))), zero=of.zero_point)


def _factors(array: Any) -> Value:
    """Factors as a constant: a number if there is one, otherwise an array. Infinite factors become the largest
    float."""
    factors = np.minimum(array, np.finfo(np.float32).max)
    return constant(factors.item() if factors.size == 1 else factors, f32)


def quantized_weight(values: Any, scales: Any, axis: int = 0) -> Value:
    """Weights as a constant: int8 `values` with zero point 0. scales: a number, or one for each element along
    `axis`."""
    array, of = weight_arrays("quantized_weight", values, scales, axis)
    return constant(array, s8, of, "weight")


def quantized_conv2d(
    input: Value,
    weight: Value,
    bias: TensorLike,
    scale: float,
    zero_point: int,
    stride: Numbers = 1,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    groups: int = 1,
    low: int = LOW,
    high: int = HIGH,
    clamp_gradient: str = OPEN,
) -> Value:
    """s8 [N, in, H, W] and weights [out, in / groups, kh, kw] (quantized_weight, or another s8 tensor with scales along
    axis 0) -> s8 [N, out, rows, columns]. bias: int32 [out] in units of the input's scale times the weight's, None, or
    a float tensor, which is rounded to such integers."""
    name = "quantized_conv2d"
    input, weight = as_value(input), as_value(weight)
    x = images(name, input, 2)
    numbers = {
        "stride": pair(name, "stride", stride, 2),
        "padding": on_both_sides(pair(name, "padding", padding, 2, absent=0)),
        "dilation": pair(name, "dilation", dilation, 2),
    }
    groups = whole(name, input, "groups", groups)
    if groups < 1:
        raise shape_error(name, [input, weight], f"groups={groups} must be at least 1")
    if weight.ndim != 4:
        raise shape_error(name, [input, weight], "the weight must be [out, in / groups, kh, kw]")
    depthwise = groups > 1 and groups == x.channels == weight.shape[0] and weight.shape[1] == 1
    op, convention = limited_op(name, "depthwise2d_s8" if depthwise else "conv2d_s8", clamp_gradient)
    attrs = {**numbers, **convention, **({} if depthwise else {"groups": groups})}
    parts, result = product_operands(name, input, weight, bias, scale, zero_point, low, high)
    filters = stored_filters(weight, depthwise)
    return x.back(applied(name, [input, weight], op, x.value, filters, *parts, **attrs, **result).results[0])


def quantized_linear(
    input: Value,
    weight: Value,
    bias: TensorLike,
    scale: float,
    zero_point: int,
    low: int = LOW,
    high: int = HIGH,
    clamp_gradient: str = OPEN,
) -> Value:
    """s8 [N, in] and weights [out, in] (quantized_weight) -> s8 [N, out]; bias as in quantized_conv2d."""
    name = "quantized_linear"
    input, weight = as_value(input), as_value(weight)
    parts, result = product_operands(name, input, weight, bias, scale, zero_point, low, high)
    multiplier, shift = (p.node.attrs["value"] for p in parts[1:])
    per_channel = bool((multiplier != multiplier[0]).any() or (shift != shift[0]).any())
    op, convention = limited_op(name, "dense_s8", clamp_gradient)
    numbers = {"per_channel": per_channel, **convention, **result}
    return applied(name, [input, weight], op, input, weight, *parts, **numbers).results[0]


def quantized_add(
    a: Value,
    b: Value,
    scale: float,
    zero_point: int,
    low: int = LOW,
    high: int = HIGH,
    clamp_gradient: str = OPEN,
) -> Value:
    """a + b of s8 tensors, broadcast."""
    return signed_sum("quantized_add", (1, 1), a, b, scale, zero_point, low, high, clamp_gradient)


def quantized_sub(
    a: Value,
    b: Value,
    scale: float,
    zero_point: int,
    low: int = LOW,
    high: int = HIGH,
    clamp_gradient: str = OPEN,
) -> Value:
    """a - b of s8 tensors, broadcast."""
    return signed_sum("quantized_sub", (1, -1), a, b, scale, zero_point, low, high, clamp_gradient)


def signed_sum(
    name: str,
    signs: Sequence[int],
    a: Value,
    b: Value,
    scale: float,
    zero_point: int,
    low: int = LOW,
    high: int = HIGH,
    clamp_gradient: str = OPEN,
) -> Value:
    """signs[0] * a + signs[1] * b of s8 tensors, broadcast; a sign is 1 or -1."""
    a, b = as_value(a), as_value(b)
    of_a, of_b = (quantized_operand(name, v) for v in (a, b))
    result = result_attributes(name, scale, zero_point, low, high)
    common = 2 * max(of_a.scale, of_b.scale)
    terms = {"left": _MORE_BITS, "a_zero": of_a.zero_point, "b_zero": of_b.zero_point}
    for key, sign, of in zip("ab", signs, (of_a, of_b), strict=True):
        terms[f"{key}_multiplier"], terms[f"{key}_shift"] = fixed_point(sign * of.scale / common)
    multiplier, shift = fixed_point(common / (2**_MORE_BITS * result["quantization"].scale))
    checked(name, [a, b], check_bits, 255 << _MORE_BITS, shift)
    op, convention = limited_op(name, "add_s8", clamp_gradient)
    attrs = {**terms, "multiplier": multiplier, "shift": shift, "zero": result["quantization"].zero_point}
    return applied(name, [a, b], op, a, b, **attrs, **convention, **result).results[0]


def quantized_mul(
    a: Value,
    b: Value,
    scale: float,
    zero_point: int,
    low: int = LOW,
    high: int = HIGH,
    clamp_gradient: str = OPEN,
) -> Value:
    """a * b of s8 tensors, broadcast."""
    a, b = as_value(a), as_value(b)
    of_a, of_b = (quantized_operand("quantized_mul", v) for v in (a, b))
    result = result_attributes("quantized_mul", scale, zero_point, low, high)
    multiplier, shift = fixed_point(of_a.scale * of_b.scale / result["quantization"].scale)
    checked("quantized_mul", [a, b], check_bits, 255 * 255, shift)
    zeros = {
        f"{k}zero": of.zero_point for k, of in (("a_", of_a), ("b_", of_b), ("", result["quantization"]))
    }
    op, convention = limited_op("quantized_mul", "mul_s8", clamp_gradient)
    attrs = {**zeros, "multiplier": multiplier, "shift": shift, **convention, **result}
    return applied("quantized_mul", [a, b], op, a, b, **attrs).results[0]


def clamped(q: Value, low: int, high: int, clamp_gradient: str) -> Value:
    """An s8 tensor limited to low to high; the tensor itself if both limits are outside the range of s8."""
    op, convention = with_convention("clamp_s8", clamp_gradient)
    return q if low < LOW and high > HIGH else apply(op, q, low=low, high=high, **convention)


def quantized_avg_pool2d(
    input: Value,
    kernel_size: Numbers,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    low: int = LOW,
    high: int = HIGH,
    clamp_gradient: str = OPEN,
) -> Value:
    """The mean of each window of s8 [N, C, H, W], padding not counted, rounded to the nearest integer, halves away from
    0. The result has the scale and zero point of the input."""
    of = "quantized_avg_pool2d", "avg_pool2d_s8"
    return _pooled(*of, input, kernel_size, stride, padding, low, high, clamp_gradient)


def quantized_max_pool2d(
    input: Value,
    kernel_size: Numbers,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    low: int = LOW,
    high: int = HIGH,
    clamp_gradient: str = OPEN,
) -> Value:
    """The largest element of each window of s8 [N, C, H, W]; the result has the scale and zero point of the input."""
    of = "quantized_max_pool2d", "max_pool2d_s8"
    return _pooled(*of, input, kernel_size, stride, padding, low, high, clamp_gradient)


def quantized_softmax(input: Value, dim: int = -1) -> Value:
    """Softmax of an s8 tensor along `dim`, in fixed point; the result has the scale 1/256 and the zero point -128. The
    gradient is the gradient of softmax at the numbers that the result represents."""
    name = "quantized_softmax"
    x = as_value(input)
    numbers = softmax_s8(quantized_operand(name, x).scale)
    axis, last = axis_of(name, x, dim), x.ndim - 1
    order = tuple(last if i == axis else axis if i == last else i for i in range(x.ndim))
    rows = x if axis == last else apply("permute", x, dims=order)
    (y,) = applied(name, [x], "softmax_s8", rows, **numbers).results
    return y if axis == last else apply("permute", y, dims=order)


def _pooled(
    name: str,
    op: str,
    input: Value,
    kernel_size: Numbers,
    stride: Numbers | None,
    padding: Numbers,
    low: int,
    high: int,
    clamp_gradient: str,
) -> Value:
    input = as_value(input)
    quantized_operand(name, input)
    x: Images = images(name, input, 2)
    kernel = pair(name, "kernel_size", kernel_size, 2)
    strides = kernel if stride is None else pair(name, "stride", stride, 2)
    sides = on_both_sides(pair(name, "padding", padding, 2, absent=0))
    check_limits(name, low, high)
    check_convention(name, clamp_gradient)
    fused = clamp_gradient == OPEN
    attrs = pooling_s8(kernel, strides, sides, *((low, high) if fused else ()))
    (y,) = applied(name, [input], op, x.value, **attrs).results
    is_limited = not fused and (low, high) != (LOW, HIGH)
    return x.back(clamped(y, low, high, clamp_gradient) if is_limited else y)
