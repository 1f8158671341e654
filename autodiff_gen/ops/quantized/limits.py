"""Gradients of ops whose s8 result is limited to the integers from `low` to `high`, their attributes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ...errors import ShapeError
from ...ir.build import apply
from ...ir.node import VJP, OptionalValues, Sample, Value, Values, Wanted, define
from ...ir.op_kinds import ATOM, Attrs, Elementwise
from ...ir.quantization import HIGH, LOW
from ...ir.types import Type, bool_, s8

HEADER = "ag_quantization.h"


def is_s8(*types: Type) -> None:
    for t in types:
        if t.dtype is not s8:
            raise ShapeError(f"needs s8, not {t.dtype}; F.quantize makes it")


def _inside_type(q: Type, *, low: int, high: int) -> Type:
    is_s8(q)
    return Type(bool_, q.shape)


inside_s8 = define(
    "inside_s8",  # low < q < high
    infer=_inside_type,
    ref=lambda q, *, low, high: (q > low) & (q < high),
    vjp=None,
    lower=Elementwise("ag_is_inside({0}, {low}, {high})", ATOM, cheap=True, header=HEADER),
    torch="(a > low) & (a < high)",
    samples=(Sample(((2, 3),), {"low": -20, "high": 45}, dtypes={0: "s8"}, integers={0: (LOW, HIGH + 1)}),),
)


Gradients: TypeAlias = Callable[[Value, Sequence[Value], Attrs, Sequence[bool]], Sequence[Value | None]]


def through_limits(gradients: Gradients, of_s8: bool = False) -> VJP:
    """The VJP of an op whose s8 result is between the attributes low and high. gradients: those of the operands, from
    the part of dy that passes the limits, the operands, the attributes and which of them are wanted. of_s8: what is
    limited is an s8 already, such as a mean of some, so that -128 and 127 limit nothing."""

    def vjp(
        dys: OptionalValues, inputs: Values, outs: Values, attrs: Attrs, wanted: Wanted
    ) -> OptionalValues:
        low, high = attrs["low"], attrs["high"]
        if of_s8:
            low, high = low if low > LOW else LOW - 1, high if high < HIGH else HIGH + 1
        if low < LOW and high > HIGH:
            assert dys[0] is not None
            return gradients(dys[0], inputs, attrs, wanted)
        passes = apply("inside_s8", outs[0], low=low, high=high)
        return gradients(apply("where", passes, dys[0], 0.0), inputs, attrs, wanted)

    return vjp
