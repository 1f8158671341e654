"""Gradients of ops whose s8 result is limited to the integers from `low` to `high`, which are attributes.

With the open convention, no gradient passes elements whose stored result equals a limit. With the closed convention, no
gradient passes elements whose result was beyond a limit before it was limited; the forward pass stores a bit of each
element for this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from ...errors import ShapeError
from ...ir.build import apply
from ...ir.kernel_call import KernelCall, Result
from ...ir.names import with_role
from ...ir.node import OPS, VJP, Op, OptionalValues, Sample, Value, Values, Wanted, define
from ...ir.op_forms import FirstResultOnly
from ...ir.op_kinds import ATOM, Attrs, Elementwise, KernelOp
from ...ir.origin import building_as
from ...ir.quantization import HIGH, LOW
from ...ir.strides import Strided
from ...ir.types import Shape, Type, bool_, planned_size, s8, u8
from ...ir.windows import Windows
from ..elementwise.packed_masks import BITS, packed, unpacked

HEADER = "ag_quantization.h"
OPEN, CLOSED = "open", "closed"
CLAMP_GRADIENT = "clamp_gradient"  # the attribute of elementwise ops with the closed convention


def is_s8(*types: Type) -> None:
    for t in types:
        if t.dtype is not s8:
            raise ShapeError(f"needs s8, not {t.dtype}; F.quantize makes it")


def _mask_type(q: Type, *, low: int, high: int) -> Type:
    is_s8(q)
    return Type(bool_, q.shape)


inside_s8 = define(
    "inside_s8",  # low < q < high
    infer=_mask_type,
    ref=lambda q, *, low, high: (q > low) & (q < high),
    vjp=None,
    lower=Elementwise("ag_is_inside({0}, {low}, {high})", ATOM, cheap=True, header=HEADER),
    torch="(a > low) & (a < high)",
    samples=(Sample(((2, 3),), {"low": -20, "high": 45}, dtypes={0: "s8"}, integers={0: (LOW, HIGH + 1)}),),
)


within_s8 = define(
    "clamp_within_s8",  # low <= q <= high
    infer=_mask_type,
    ref=lambda q, *, low, high: (q >= low) & (q <= high),
    vjp=None,
    lower=Elementwise("ag_is_within({0}, {low}, {high})", ATOM, cheap=True, header=HEADER),
    torch="(a >= low) & (a <= high)",
    samples=(Sample(((2, 3),), {"low": -20, "high": 45}, dtypes={0: "s8"}, integers={0: (LOW, HIGH + 1)}),),
)

Gradients: TypeAlias = Callable[[Value, Sequence[Value], Attrs, Sequence[bool]], Sequence[Value | None]]


def with_convention(op: str, clamp_gradient: str) -> tuple[str, dict[str, Any]]:
    """The name of the op that computes the result of `op` and whose gradient follows a convention, and its additional
    attributes."""
    if clamp_gradient == OPEN:
        return op, {}
    form = OPS[op].form
    if isinstance(form, FirstResultOnly):
        return form.of, {}
    return op, {CLAMP_GRADIENT: clamp_gradient}


def through_limits(gradients: Gradients, of_s8: bool = False, mask: str = "") -> VJP:
    """The VJP of an op whose s8 result is limited to the attributes low and high. gradients: (dy, 0 where no gradient
    passes; the operands; the attributes; which gradients are wanted) -> the gradients of the operands. of_s8: values
    are in the range of s8 before they are limited, such as means, so that -128 and 127 limit nothing. mask: for an
    elementwise op, the op that tells for each element whether it was within the limits before it was limited."""

    def vjp(
        dys: OptionalValues, inputs: Values, outs: Values, attrs: Attrs, wanted: Wanted
    ) -> OptionalValues:
        y, low, high = outs[0], attrs["low"], attrs["high"]
        if of_s8:
            low, high = low if low > LOW else LOW - 1, high if high < HIGH else HIGH + 1
        if low < LOW and high > HIGH:
            assert dys[0] is not None
            return gradients(dys[0], inputs, attrs, wanted)
        if len(outs) > 1:
            passes = unpacked(with_role(outs[1], "mask"), y.type.shape)
        elif CLAMP_GRADIENT in attrs:
            origin = y.node.origin
            known = {k: v for k, v in attrs.items() if k != CLAMP_GRADIENT}
            with building_as(origin):
                bits = packed(partial(apply, mask, **known), inputs, y.type.shape)
            passes = unpacked(bits, y.type.shape)
        else:
            passes = apply("inside_s8", y, low=low, high=high)
        return gradients(apply("where", passes, dys[0], 0.0), inputs, attrs, wanted)

    return vjp


@dataclass(frozen=True)
class Limited:
    """A limited op that a kernel computes. unlimited: (arrays, attributes) -> its integers before they are limited."""

    name: str
    infer: Callable[..., Type]
    unlimited: Callable[..., Any]
    gradients: Gradients
    lower: KernelOp
    samples: tuple[Sample, ...]
    windows: Callable[[Sequence[Shape], Attrs], Windows | None] = lambda shapes, attrs: None

    def register(self) -> Op:
        """Register the op, and the op for the closed convention, whose second result is the mask. Returns the first."""
        masked = self.name.replace("_s8", "_within_s8")
        both = partial(define, vjp=through_limits(self.gradients), samples=self.samples, windows=self.windows)
        op = both(self.name, self.infer, self._limited, lower=self.lower, form=FirstResultOnly(masked))

        def call(layouts: Sequence[Strided], results: Sequence[Type], attrs: Attrs) -> KernelCall:
            found = self.lower.choose(layouts, results, attrs)
            pointers = {**found.pointers, "within": Result(1)}
            return replace(found, kernel=masked, pointers=pointers, in_place="")

        both(masked, self._masked_type, self._masked, lower=replace(self.lower, choose=call))
        return op

    def _limited(self, *arrays: Any, **attrs: Any) -> Any:
        return np.clip(self.unlimited(*arrays, **attrs), attrs["low"], attrs["high"]).astype(np.int8)

    def _masked(self, *arrays: Any, **attrs: Any) -> Any:
        v = self.unlimited(*arrays, **attrs)
        within = (v >= attrs["low"]) & (v <= attrs["high"])
        bits = np.packbits(within.reshape(len(v), -1), axis=1, bitorder="little")
        return np.clip(v, attrs["low"], attrs["high"]).astype(np.int8), bits

    def _masked_type(self, *types: Type, **attrs: Any) -> tuple[Type, Type]:
        y = self.infer(*types, **attrs)
        return y, Type(u8, (y.shape[0], -(-planned_size(y.shape[1:]) // BITS)))
