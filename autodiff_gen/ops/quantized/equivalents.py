"""The op on s8 that corresponds to an op on floats, for frontends/quant/convert.py. Elementwise ops, views and sums
have no entry: their traits are sufficient."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from ...ir.node import Op, Value
from ...ir.op_kinds import Attrs
from .pooling import pooling_s8
from .softmax import LARGEST_ROW


@dataclass(frozen=True)
class Product:
    """The product of a tensor with channels last and weights. op: the op on s8; attributes: its attributes in addition
    to the attributes of the op on floats; rank: the number of axes of the weights of the op on floats; order: these
    axes, with -1 for an added axis of extent 1, in the order of PyTorch's weight [out, in / groups, ...]."""

    op: str
    rank: int
    order: tuple[int, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def as_in_pytorch(self, weights: Any) -> Any:
        """The weights in PyTorch's order."""
        whole = np.expand_dims(weights, -1) if -1 in self.order else weights
        return np.transpose(whole, self.order)


@dataclass(frozen=True)
class Pooling:
    """A pooling. op: the op on s8; attributes: attributes of the op on floats -> attributes of `op`, or None if no op
    on s8 computes the same."""

    op: str
    attributes: Callable[[Attrs], dict[str, Any] | None]


@dataclass(frozen=True)
class SoftmaxOperand:
    """Softmax of x along one axis."""

    x: Value
    axis: int


QuantizedEquivalent: TypeAlias = Product | Pooling


def _max_pooling(attrs: Attrs) -> dict[str, Any] | None:
    if attrs["dilation"] != (1, 1) or attrs["ceil_mode"]:
        return None
    return pooling_s8(attrs["kernel"], attrs["stride"], attrs["padding"])


def _avg_pooling(attrs: Attrs) -> dict[str, Any] | None:
    elements = attrs["kernel"][0] * attrs["kernel"][1]
    whole = not any(attrs["padding"]) and attrs["divisor"] in (0, elements)
    counted = not attrs["divisor"] and not attrs["count_include_pad"]
    if attrs["ceil_mode"] or not (whole or counted):
        return None
    return pooling_s8(attrs["kernel"], attrs["stride"], attrs["padding"])


_EQUIVALENTS: Mapping[str, QuantizedEquivalent] = {
    "conv2d": Product("conv2d_s8", 4, (0, 3, 1, 2)),
    "depthwise2d": Product("depthwise2d_s8", 3, (2, -1, 0, 1)),
    "matmul": Product("dense_s8", 2, (1, 0), {"per_channel": True}),
    "max_pool2d": Pooling("max_pool2d_s8", _max_pooling),
    "avg_pool2d": Pooling("avg_pool2d_s8", _avg_pooling),
}


def quantized_equivalent(op: Op) -> QuantizedEquivalent | None:
    """The op on quantised tensors that corresponds to an op on floats, if there is one."""
    return _EQUIVALENTS.get(op.name)


def softmax_operand(v: Value) -> SoftmaxOperand | None:
    """The operand and the axis, if v is a softmax that softmax_s8 can compute."""
    if v.node.op.name != "softmax":
        return None
    (x,), (axis, *others) = v.node.operands, v.node.attrs["axes"]
    extent = x.shape[axis]
    return (
        SoftmaxOperand(x, axis) if not others and isinstance(extent, int) and extent <= LARGEST_ROW else None
    )
