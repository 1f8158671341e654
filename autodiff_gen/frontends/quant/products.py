"""A product on s8 and what it absorbs: the factor and the shift of each of its output channels, and limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ...ir.build import apply, constant
from ...ir.interpreter import bind
from ...ir.node import Node, Value
from ...ir.quantization import HIGH, Quantization, check_sums, fixed_points, sums_of, within_sums
from ...ir.types import s8, s32
from ...ops.quantized_forms import Product
from .representations import Pending


def absorbed(node: Node, k: int, form: Pending, other: Any) -> Pending | None:
    """A pending product, operand k of a node whose other operand is an array: the node changes the factor and the shift
    of its channels. None where the array has more than one number for a channel."""
    channel = np.broadcast_to(np.arange(form.shape[-1]), form.shape)
    for view in form.views:
        channel = view.op.ref(channel, **{k: bind(a, None) for k, a in view.attrs.items()})
    numbers = np.zeros(form.shape[-1])
    spread = np.broadcast_to(other, channel.shape).astype(np.float64)
    numbers[channel.reshape(-1)] = spread.reshape(-1)
    if not np.array_equal(numbers[channel], spread):
        return None
    if node.op.signs:
        own, its = node.op.signs[k], node.op.signs[1 - k]
        factor, shift = own * form.factor, own * form.shift + its * numbers
    elif node.op.powers[k] == 1:
        by = numbers ** node.op.powers[1 - k]
        factor, shift = form.factor * by, form.shift * by
    else:
        return None
    return replace(form, factor=factor, shift=shift)


def quantized_product(
    x: Value,
    w: Any,
    form: Product,
    attrs: Mapping[str, Any],
    of: Quantization,
    low: int,
    high: int,
    factor: Any,
    shift: Any,
) -> Value:
    """The product of x and the weights w, whose channels are multiplied by `factor`, plus `shift` for each channel."""
    of_x = x.type.quantization
    assert of_x is not None
    rows = np.moveaxis(w, form.channels, 0)
    scaled = rows * factor.reshape(-1, *(1,) * (rows.ndim - 1))
    # Beyond this shift all results of a channel are at a limit.
    most = np.abs(scaled).reshape(len(scaled), -1).sum(1) * of_x.scale * 255 + 512 * of.scale
    shift = np.clip(shift, -most, most)
    scales = np.abs(scaled).reshape(len(scaled), -1).max(1) / HIGH
    # A channel of weights that are 0, or small beside its shift, has a scale at which the bias fits 30 bits.
    scales = np.maximum(scales, np.maximum(np.abs(shift) / (of_x.scale * 2**30), 1e-30))
    q = np.clip(np.rint(scaled / scales.reshape(-1, *(1,) * (rows.ndim - 1))), -HIGH, HIGH).astype(np.int8)
    multiplier, shifts = fixed_points(of_x.scale * scales / of.scale)
    sums = sums_of(q, of_x.zero_point)
    bias = within_sums(np.rint(shift / (of_x.scale * scales)), sums)
    check_sums(bias, sums, shifts)

    def stored(array: Any) -> Any:
        return np.ascontiguousarray(form.stored(np.moveaxis(array, 0, form.channels)))

    of_w = Quantization(tuple(scales.tolist()), 0, 0).moved(stored, q.shape)
    weights = constant(stored(q), s8, of_w, "weight")
    parts = {"bias": bias, "multiplier": multiplier, "shift": shifts}
    operands = [constant(array, s32, role=role) for role, array in parts.items()]
    more = {"x_zero": of_x.zero_point, "quantization": of, "low": low, "high": high}
    return apply(form.op, x, weights, *operands, **attrs, **form.attributes, **more)
