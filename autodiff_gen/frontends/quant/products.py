"""A product on s8: its 8-bit weights, and the factor and shift of each output channel, which it absorbs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...functional.quantized_operands import product_operands, stored_filters
from ...ir.build import apply_node
from ...ir.interpreter import bind
from ...ir.node import Node, Value
from ...ir.quantization import HIGH, Quantization, sums_of, within_sums
from ...ir.types import planned
from ...ops.quantized.equivalents import Product
from ...ops.quantized.limits import with_convention
from .representations import Pending
from .weights import QuantizedWeights


def absorbed(node: Node, k: int, form: Pending, other: Any) -> Pending | None:
    """The pending product `form` after a node, whose operand k it is: the node's other operand, an array, changes the
    factor and shift of the channels. None if the array has more than one number for a channel, or if the node divides
    by the product."""
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


def quantized_weights(
    w: Any, of_x: Quantization, of: Quantization, factor: Any, shift: Any
) -> dict[str, Any]:
    """The arrays of a layer with the weights w [out, in / groups, ...] times `factor` and the bias `shift`, both by
    channel. of_x, of: the quantisation of the layer's input and of its result."""

    def along(numbers: Any) -> Any:
        return numbers.reshape(-1, *(1,) * (w.ndim - 1))

    scaled = w * along(factor)
    # Beyond this shift all results of a channel are at a limit.
    most = np.abs(scaled).reshape(len(scaled), -1).sum(1) * of_x.scale * 255 + 512 * of.scale
    shift = np.clip(shift, -most, most)
    scales = np.abs(scaled).reshape(len(scaled), -1).max(1) / HIGH
    # If the weights of a channel are 0, or small relative to its shift, the scale makes the bias fit 30 bits.
    scales = np.maximum(scales, np.maximum(np.abs(shift) / (of_x.scale * 2**30), 1e-30))
    q = np.clip(np.rint(scaled / along(scales)), -HIGH, HIGH).astype(np.int8)
    bias = within_sums(np.rint(shift / (of_x.scale * scales)), sums_of(q, of_x.zero_point))
    return {"weight": q, "weight_scales": scales, "bias": bias}


class Layers:
    """The weights of the products of a graph, in the order in which they are converted; another conversion of the graph
    takes them again. modules: the names of the float network's modules; the weights of a second call of a layer get
    other names."""

    def __init__(self, known: Sequence[QuantizedWeights] = (), modules: Collection[str] = ()) -> None:
        self.every, self._modules = list(known), modules
        self._position = 0

    def next(self, name: str, x: Value, arrays: Callable[[Quantization], dict[str, Any]]) -> QuantizedWeights:
        """The weights of the next product, which the layer `name` computes of x. arrays: makes them from the
        quantisation of x, in the first conversion."""
        if self._position == len(self.every):
            of_x = x.type.quantization
            assert of_x is not None
            taken = {layer.name for layer in self.every}
            others = (f"{name}_{k}" for k in itertools.count(2))
            names = itertools.chain([name], (n for n in others if n not in self._modules))
            free = next(n for n in names if n not in taken)
            new = arrays(of_x)
            groups = planned(x.type.shape)[-1] // new["weight"].shape[1]
            self.every.append(QuantizedWeights(free, new, of_x.scale, groups))
        self._position += 1
        return self.every[self._position - 1]


def product(
    x: Value,
    layer: QuantizedWeights,
    form: Product,
    attrs: Mapping[str, Any],
    of: Quantization,
    low: int,
    high: int,
    clamp_gradient: str,
) -> Value:
    """The product of x and the weights of a layer."""
    of_x = x.type.quantization
    assert of_x is not None
    arrays = layer.taken(of_x.scale)
    weight, name = arrays["weight"], f"layer {layer.name!r}"
    operands, result = product_operands(name, x, weight, arrays["bias"], of.scale, of.zero_point, low, high)
    if form.rank > 2:
        weight = stored_filters(weight, form.rank == 3)
    op, convention = with_convention(form.op, clamp_gradient)
    return apply_node(op, x, weight, *operands, **attrs, **form.attributes, **convention, **result).results[0]
