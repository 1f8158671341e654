"""Helpers of several families of op records: shape rules, and short VJPs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir.build import apply, with_shape
from ..ir.names import with_role
from ..ir.node import CONST, VJP, OptionalValues, Sample, Value, Values, Wanted
from ..ir.op_kinds import Attrs
from ..ir.types import Shape, Type, bool_, broadcast, conversion

# Samples of every elementwise op with one operand, and with two.
ONES = (Sample(((2, 3),)), Sample(((1,),)), Sample(((),)))
PAIRS = (
    Sample(((2, 3), (2, 3))),
    Sample(((2, 3), (3,))),
    Sample(((2, 1), (1, 3))),
    Sample(((), (4,))),
    Sample(((1,), (1,))),
)


def within(low: float, high: float, samples: tuple[Sample, ...]) -> tuple[Sample, ...]:
    """The same samples with numbers from [low, high)."""
    return tuple(Sample(s.inputs, s.attrs, (low, high), s.dtypes, s.high) for s in samples)


def same_dtype(*types: Type) -> None:
    if len({t.dtype for t in types}) != 1:
        raise ShapeError(f"dtypes differ; {conversion(*types)}")


def broadcasting(*types: Type) -> Type:
    if types.count(types[0]) == len(types):
        return types[0]
    same_dtype(*types)
    return Type(types[0].dtype, broadcast(*(t.shape for t in types)))


def arithmetic(*types: Type) -> Type:
    """The shape rule of arithmetic. Integers of one byte are rejected: they are storage types, which C promotes to
    int."""
    if types[0].dtype.kind != "f" and types[0].dtype.name not in ("s32", "u32"):
        raise ShapeError(f"needs floats, s32 or u32, not {types[0].dtype}; {conversion(types[0])}")
    return broadcasting(*types)


def comparing(*types: Type) -> Type:
    return Type(bool_, broadcasting(*types).shape)


def floating(*types: Type) -> Type:
    """The shape rule of functions of floats."""
    check_float(*types)
    return broadcasting(*types)


def check_float(*types: Type) -> None:
    for t in types:
        if t.dtype.kind != "f":
            raise ShapeError(f"needs a float, not {t.dtype}; {conversion(t)}")


def sum_to(v: Value, shape: Shape) -> Value:
    """Sum a gradient over the axes that broadcasting added or expanded; the result has `shape`."""
    if v.type.shape == shape:
        return v
    added = len(v.type.shape) - len(shape)
    stretched = [i + added for i, d in enumerate(shape) if d == 1 and v.type.shape[i + added] != 1]
    axes = (*(i for i in range(added) if v.type.shape[i] != 1), *stretched)
    if axes:
        v = apply("sum", v, axes=axes, keepdim=bool(stretched))
    return with_shape(v, shape)


def by_operand(*pullbacks: Callable[..., Value] | None) -> VJP:
    """A VJP from one function per operand, `(dy, *inputs, *outs, attrs) -> dx`; None: the operand gets no gradient.
    dy: the gradient of the first result; other results have none."""

    def vjp(
        dys: OptionalValues, inputs: Values, outs: Values, attrs: Attrs, wanted: Wanted
    ) -> OptionalValues:
        operands = zip(pullbacks, wanted, strict=True)
        wants = [f if want and dys[0] is not None else None for f, want in operands]
        return [None if f is None else f(dys[0], *inputs, *outs, attrs) for f in wants]

    return vjp


def simple(*pullbacks: Callable[..., Value] | None) -> VJP:
    """A VJP from one function per operand, `(dy, *inputs, y) -> dx`; None: the operand gets no gradient. dx may have
    the broadcast shape: it is summed over the broadcast axes here."""

    def summed(operand: int, pullback: Callable[..., Value]) -> Callable[..., Value]:
        return lambda dy, *given: sum_to(pullback(dy, *given[:-1]), given[operand].type.shape)

    return by_operand(*[f and summed(k, f) for k, f in enumerate(pullbacks)])


def as_s32(index: Value) -> Value:
    """An integer value as s32, the dtype of indices in kernels."""
    return index if index.type.dtype.name == "s32" else with_role(apply("to_s32", index), "chosen")


def number(v: Value) -> float | None:
    """The number if v is a constant scalar, otherwise None."""
    value: Any = v.node.attrs.get("value") if v.node.op is CONST else None
    return float(value) if isinstance(value, np.ndarray) and value.ndim == 0 else None


def never(*_: object, **__: object) -> Any:
    """The shape rule and the reference of an op whose nodes hold regions. Never called: the nodes are made with their
    types, and the interpreter computes their values."""
    raise AssertionError("a node with regions is neither inferred nor computed by its op")
