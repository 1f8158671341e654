"""Functions of quantised tensors: 8-bit integers that represent scale * (q - zero_point), with 32-bit sums.

Images are [N, C, H, W], as in torch.nn.functional. `scale` and `zero_point` are those of the result, which is limited
to the integers from `low` to `high`: an activation such as ReLU6 is part of the op before it. Results are equal to the
last bit in NumPy and in C on every core; the rounding is CMSIS-NN's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir.build import apply, constant
from ..ir.names import with_role
from ..ir.node import CONST, Value
from ..ir.quantization import (
    HIGH,
    LARGEST_SUM,
    LOW,
    Quantization,
    check_bits,
    check_sums,
    fixed_point,
    fixed_points,
    sums_of,
    sums_of_any,
)
from ..ir.types import f32, planned, s8, s32
from ..ops.quantized.pooling import pooling_s8
from ..ops.quantized.softmax import softmax_s8
from .arguments import TensorLike, as_value, axis_of, shape_error
from .quantized_arguments import (
    array_of,
    check_limits,
    quantization_of,
    quantized_operand,
    weight_arrays,
    weight_quantization,
)
from .shapes import reshape
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

_MORE_BITS = 20  # of the terms of a sum while they are brought to a common scale


def quantize(input: TensorLike, scale: TensorLike, zero_point: int = 0, axis: int | None = None) -> Value:
    """float32 -> s8: round(input / scale) + zero_point, halves to even, between -128 and 127; NaN becomes -128. scale:
    a number, or with `axis` one for each element along it, and no zero_point. Gradients pass where the
    nearest integer is between -128 and 127."""
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
    """s8 -> float32: scale * (input - zero_point)."""
    x = as_value(input)
    own = x.type.quantization
    of = quantized_operand("dequantize", x, own.axis if own else None)
    return apply("dequantize", x, _factors(of.along(planned(x.shape))), zero=of.zero_point)


def _factors(array: Any) -> Value:
    """A number where there is one, else an array; none is infinite."""
    factors = np.minimum(array, np.finfo(np.float32).max)
    return constant(factors.item() if factors.size == 1 else factors, f32)


def quantized_weight(values: Any, scales: Any, axis: int = 0) -> Value:
    """Weights as a constant: s8 `values`, with one scale or one for each element along `axis`; zero points are 0."""
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
    op = "depthwise2d_s8" if depthwise else "conv2d_s8"
    attrs = numbers if depthwise else {**numbers, "groups": groups}
    parts, result = product_operands(name, input, weight, bias, scale, zero_point, low, high)
    filters = stored_filters(weight, depthwise)
    (y,) = applied(name, [input, weight], op, x.value, filters, *parts, **attrs, **result).results
    return x.back(y)


def quantized_linear(
    input: Value,
    weight: Value,
    bias: TensorLike,
    scale: float,
    zero_point: int,
    low: int = LOW,
    high: int = HIGH,
) -> Value:
    """s8 [N, in] and weights [out, in] (quantized_weight) -> s8 [N, out]; bias as in quantized_conv2d."""
    name = "quantized_linear"
    input, weight = as_value(input), as_value(weight)
    parts, result = product_operands(name, input, weight, bias, scale, zero_point, low, high)
    multiplier, shift = (p.node.attrs["value"] for p in parts[1:])
    per_channel = bool((multiplier != multiplier[0]).any() or (shift != shift[0]).any())
    operands = (input, weight, *parts)
    return applied(name, [input, weight], "dense_s8", *operands, per_channel=per_channel, **result).results[0]


def quantized_add(
    a: Value, b: Value, scale: float, zero_point: int, low: int = LOW, high: int = HIGH
) -> Value:
    """a + b of s8 tensors, broadcast."""
    return signed_sum("quantized_add", (1, 1), a, b, scale, zero_point, low, high)


def quantized_sub(
    a: Value, b: Value, scale: float, zero_point: int, low: int = LOW, high: int = HIGH
) -> Value:
    """a - b of s8 tensors, broadcast."""
    return signed_sum("quantized_sub", (1, -1), a, b, scale, zero_point, low, high)


def signed_sum(
    name: str,
    signs: Sequence[int],
    a: Value,
    b: Value,
    scale: float,
    zero_point: int,
    low: int = LOW,
    high: int = HIGH,
) -> Value:
    """The sum of two s8 tensors, each with a sign."""
    a, b = as_value(a), as_value(b)
    of_a, of_b = (quantized_operand(name, v) for v in (a, b))
    result = _result(name, scale, zero_point, low, high)
    common = 2 * max(of_a.scale, of_b.scale)
    terms = {"left": _MORE_BITS, "a_zero": of_a.zero_point, "b_zero": of_b.zero_point}
    for key, sign, of in zip("ab", signs, (of_a, of_b), strict=True):
        terms[f"{key}_multiplier"], terms[f"{key}_shift"] = fixed_point(sign * of.scale / common)
    multiplier, shift = fixed_point(common / (2**_MORE_BITS * result["quantization"].scale))
    _checked(name, [a, b], check_bits, 255 << _MORE_BITS, shift)
    attrs = {**terms, "multiplier": multiplier, "shift": shift, "zero": result["quantization"].zero_point}
    return applied(name, [a, b], "add_s8", a, b, **attrs, **result).results[0]


def quantized_mul(
    a: Value, b: Value, scale: float, zero_point: int, low: int = LOW, high: int = HIGH
) -> Value:
    """a * b of s8 tensors, broadcast."""
    a, b = as_value(a), as_value(b)
    of_a, of_b = (quantized_operand("quantized_mul", v) for v in (a, b))
    result = _result("quantized_mul", scale, zero_point, low, high)
    multiplier, shift = fixed_point(of_a.scale * of_b.scale / result["quantization"].scale)
    _checked("quantized_mul", [a, b], check_bits, 255 * 255, shift)
    zeros = {
        f"{k}zero": of.zero_point for k, of in (("a_", of_a), ("b_", of_b), ("", result["quantization"]))
    }
    attrs = {**zeros, "multiplier": multiplier, "shift": shift, **result}
    return applied("quantized_mul", [a, b], "mul_s8", a, b, **attrs).results[0]


def quantized_avg_pool2d(
    input: Value,
    kernel_size: Numbers,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    low: int = LOW,
    high: int = HIGH,
) -> Value:
    """The mean of each window of s8 [N, C, H, W], without its padding, rounded to the nearest integer, halves away from
    0; the result has the scale and zero point of the input."""
    return _pooled("quantized_avg_pool2d", "avg_pool2d_s8", input, kernel_size, stride, padding, low, high)


def quantized_max_pool2d(
    input: Value,
    kernel_size: Numbers,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    low: int = LOW,
    high: int = HIGH,
) -> Value:
    """The largest element of each window of s8 [N, C, H, W]; the result has the scale and zero point of the input."""
    return _pooled("quantized_max_pool2d", "max_pool2d_s8", input, kernel_size, stride, padding, low, high)


def quantized_softmax(input: Value, dim: int = -1) -> Value:
    """Softmax of an s8 tensor along `dim`, in fixed point; the result has the scale 1/256 and the zero point -128. The
    gradient is that of softmax at the numbers that the result represents."""
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
) -> Value:
    input = as_value(input)
    quantized_operand(name, input)
    x: Images = images(name, input, 2)
    kernel = pair(name, "kernel_size", kernel_size, 2)
    strides = kernel if stride is None else pair(name, "stride", stride, 2)
    sides = on_both_sides(pair(name, "padding", padding, 2, absent=0))
    check_limits(name, low, high)
    attrs = pooling_s8(kernel, strides, sides, low, high)
    return x.back(applied(name, [input], op, x.value, **attrs).results[0])


def _result(name: str, scale: float, zero_point: int, low: int, high: int) -> dict[str, Any]:
    """The attributes of the result."""
    check_limits(name, low, high)
    return {"quantization": quantization_of(name, scale, zero_point), "low": low, "high": high}


def product_operands(
    name: str, x: Value, weight: Value, bias: TensorLike, scale: float, zero_point: int, low: int, high: int
) -> tuple[list[Value], dict[str, Any]]:
    """bias, multipliers and shifts of a product's output channels, and its attributes. Raises ShapeError unless no sum
    can overflow."""
    of_x, of_w = quantized_operand(name, x), quantized_operand(name, weight, 0)
    if of_w.zero_point:
        raise shape_error(name, [x, weight], f"the weight has the zero point {of_w.zero_point}, needs 0")
    out, *window = planned(weight.shape)
    scales = np.broadcast_to(np.array(of_w.scales), (out,))
    result = _result(name, scale, zero_point, low, high)
    multiplier, shift = fixed_points(of_x.scale * scales / result["quantization"].scale)
    if weight.node.op is CONST:
        sums = sums_of(weight.node.attrs["value"], of_x.zero_point)
    else:
        sums = sums_of_any(math.prod(window), of_x.zero_point)
    given = [x, weight]
    if isinstance(bias, Value):
        first = _rounded_bias(name, given, bias, of_x.scale, scales, sums, shift)
    else:
        numbers = np.zeros(out, np.int32) if bias is None else array_of(bias)
        if numbers.dtype != np.int32 or numbers.shape != (out,):
            raise shape_error(
                name, given, f"the bias must be int32[{out}], not {numbers.dtype}{list(numbers.shape)}"
            )
        _checked(name, given, check_sums, numbers.astype(np.int64), sums, shift)
        first = constant(numbers, s32, role="bias")
    scale_by = [constant(multiplier, s32, role="multiplier"), constant(shift, s8, role="shift")]
    return [first, *scale_by], {"x_zero": of_x.zero_point, **result}


def _rounded_bias(
    name: str,
    given: Sequence[Value],
    bias: Value,
    x_scale: float,
    scales: Any,
    sums: tuple[Any, Any],
    shift: Any,
) -> Value:
    """A float bias in units of the sums, limited to what these leave room for. The scales of the weights are a table
    that gradients read too."""
    if bias.shape != scales.shape:
        raise shape_error(
            name, given, f"the bias must have the shape {list(scales.shape)}, not {list(bias.shape)}"
        )
    most = LARGEST_SUM >> max(int(np.max(shift)), 0)
    room = np.nextafter(np.float32(most - max(np.max(sums[1]), -np.min(sums[0]))), np.float32(0))
    if room < 1:
        _checked(name, given, check_sums, 0, sums, shift)
    of = Quantization(tuple((x_scale * scales).tolist()), 0, 0)
    numbers = {"inverse": 1.0 / x_scale, "low": -float(room), "high": float(room), "quantization": of}
    of_w = constant(scales, f32, role="weight_scales")
    return with_role(apply("quantize_s32", bias, of_w, **numbers), "bias_in_sums")


def _checked(name: str, given: Sequence[Value], check: Callable[..., None], *arguments: Any) -> None:
    """A check whose error names the caller's function."""
    try:
        check(*arguments)
    except ShapeError as error:
        raise shape_error(name, given, str(error)) from None


def stored_filters(weight: Value, depthwise: bool) -> Value:
    """The weights as kernels read them: [out, kh, kw, in / groups], or [kh, kw, out]."""
    out, _, *window = planned(weight.shape)
    order = (1, 2, 0) if depthwise else (0, 2, 3, 1)
    if weight.node.op is not CONST:
        return apply("permute", reshape(weight, (out, *window)) if depthwise else weight, dims=order)

    def stored(array: Any) -> Any:
        return np.ascontiguousarray(np.transpose(array[:, 0] if depthwise else array, order))

    array, of = weight.node.attrs["value"], weight.type.quantization
    assert of is not None
    return constant(stored(array), s8, of.moved(stored, array.shape), "weight")
