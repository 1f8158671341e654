"""Functions of one quantised tensor as tables of 256 integers, and their derivatives as tables of 256 floats."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import ShapeError
from ...ir.build import apply, constant
from ...ir.node import Sample, Value, define
from ...ir.op_kinds import ATOM, Attrs, Elementwise, Pick
from ...ir.quantization import HIGH, LOW, Quantization
from ...ir.types import Type, f32, s8, s32
from ..support import by_operand
from .limits import is_s8

ELEMENTS = HIGH - LOW + 1
_ANY = Quantization((0.05,), 3)


def _lookup_type(table: Type, index: Type, *, quantization: Quantization) -> Type:
    is_s8(table)
    if table.shape != (ELEMENTS,) or index.dtype is not s32:
        raise ShapeError(f"needs a table of {ELEMENTS} elements and an index in s32")
    return Type(s8, index.shape, quantization)


lookup_s8 = define(
    "lookup_s8",  # table[index]: any function of one quantised tensor, for each of its integers
    infer=_lookup_type,
    ref=lambda table, index, *, quantization: table[index],
    vjp=None,
    lower=Pick(lambda table, index, attrs: ((None,), tuple(range(len(index))))),
    samples=tuple(
        Sample(
            ((ELEMENTS,), shape),
            {"quantization": _ANY},
            dtypes={0: "s8", 1: "s32"},
            integers={0: (LOW, HIGH + 1), 1: (0, ELEMENTS)},
        )
        for shape in ((2, 3), (5,))
    ),
    torch="a[b.long()]",
)


@dataclass(frozen=True)
class Slopes:
    """The derivative of a function at the real number of each integer; 0 where the value of the function is outside of
    the range that its quantised result represents."""

    numbers: tuple[float, ...]

    def __repr__(self) -> str:
        return f"<{len(self.numbers)} numbers>"


def index_of(x: Value) -> Value:
    """The index in a table of each integer of x, s8."""
    return apply("sub", apply("to_s32", x), constant(LOW, s32))


def _slopes_type(y: Type, x: Type, *, slopes: Slopes) -> Type:
    is_s8(y, x)
    if y.shape != x.shape or len(slopes.numbers) != ELEMENTS:
        raise ShapeError(f"needs two tensors of one shape and {ELEMENTS} slopes")
    return y


def _slopes_gradient(dy: Value, y: Value, x: Value, out: Value, attrs: Attrs) -> Value:
    slopes = constant(np.array(attrs["slopes"].numbers), f32, role="slopes")
    return apply("mul", dy, apply("index_select", slopes, index_of(x), dim=0))


with_slopes_s8 = define(
    "with_slopes_s8",  # a, which is a function of b; the gradient of b follows from the function's derivative
    infer=_slopes_type,
    ref=lambda y, x, *, slopes: y,
    vjp=by_operand(None, _slopes_gradient),
    lower=Elementwise("{0}", ATOM, ATOM, cheap=True),
    samples=(
        Sample(
            ((2, 3), (2, 3)),
            {"slopes": Slopes((0.5,) * ELEMENTS)},
            dtypes={0: "s8", 1: "s8"},
            integers={0: (LOW, HIGH + 1), 1: (LOW, HIGH + 1)},
        ),
    ),
    chooses=(0,),
)
