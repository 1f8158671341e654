"""Operands of products of quantised tensors: bias, multipliers and shifts of output channels, and weights as kernels
read them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir.build import apply, constant
from ..ir.names import with_role
from ..ir.node import CONST, Value
from ..ir.quantization import LARGEST_SUM, Quantization, check_sums, fixed_points, sums_of, sums_of_any
from ..ir.types import f32, planned, s8, s32
from .arguments import TensorLike, shape_error
from .quantized_arguments import array_of, quantized_operand, result_attributes
from .shapes import reshape


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
    result = result_attributes(name, scale, zero_point, low, high)
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
        checked(name, given, check_sums, numbers.astype(np.int64), sums, shift)
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
    """A float bias in units of the sums, limited so that the sums cannot overflow. The scales of the weights are a
    table that gradients read too."""
    if bias.shape != scales.shape:
        raise shape_error(
            name, given, f"the bias must have the shape {list(scales.shape)}, not {list(bias.shape)}"
        )
    most = LARGEST_SUM >> max(int(np.max(shift)), 0)
    room = np.nextafter(np.float32(most - max(np.max(sums[1]), -np.min(sums[0]))), np.float32(0))
    if room < 1:
        checked(name, given, check_sums, 0, sums, shift)
    of = Quantization(tuple((x_scale * scales).tolist()), 0, 0)
    numbers = {"inverse": 1.0 / x_scale, "low": -float(room), "high": float(room), "quantization": of}
    of_w = constant(scales, f32, role="weight_scales")
    return with_role(apply("quantize_s32", bias, of_w, **numbers), "bias_in_sums")


def checked(name: str, given: Sequence[Value], check: Callable[..., None], *arguments: Any) -> None:
    """Run a check whose ShapeError then names the caller's function."""
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
