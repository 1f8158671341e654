"""Column sums of a matrix in memory, by a kernel; created by the pass select_column_sums from `sum`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...errors import ShapeError
from ...ir.build import apply
from ...ir.kernel_call import KernelCall, Operand, Result, Scalar
from ...ir.node import Sample, define
from ...ir.op_forms import Added
from ...ir.op_kinds import Attrs, Call, Tile
from ...ir.strides import Strided
from ...ir.types import Type
from ..support import by_operand


def _type(x: Type) -> Type:
    if x.dtype.kind != "f" or len(x.shape) != 2:
        raise ShapeError("needs a matrix of floats")
    return Type(x.dtype, x.shape[1:])


def _call(layouts: Sequence[Strided], results: Sequence[Type], attrs: Attrs) -> KernelCall:
    m, n = layouts[0].shape
    alpha: float | Scalar = Scalar(2, attrs["negate"]) if "beta" in attrs else 1.0
    factors = {"alpha": alpha, "beta": attrs.get("beta", 0.0)}
    sizes = {"lda": n, "m": m, "n": n}
    return KernelCall("column_sums_f32", {"a": Operand(0), "y": Result()}, sizes, factors)


column_sums = define(
    "column_sums",  # y[n] = the sum of x[m, n] over ascending m
    infer=_type,
    ref=lambda x: x.sum(axis=0, dtype=x.dtype),
    vjp=by_operand(lambda dy, x, y, attrs: apply("broadcast_to", dy, shape=x.type.shape)),
    lower=Call(
        _call,
        summed=(0,),
        tile=lambda at, shapes, attrs: Tile({0: replace(at, axis=1)}),
        term_of=lambda operand, at, shapes, attrs: Tile({0: at}) if at.axis == 0 else None,
    ),
    samples=(Sample(((5, 3),)), Sample(((1, 1),)), Sample(((7, 9),)), Sample(((4, 19),))),
    torch="torch.sum(a, dim=0)",
)


def _into_type(x: Type, old: Type, alpha: Type, *, beta: float, negate: bool) -> Type:
    y = _type(x)
    if y != old or alpha != Type(old.dtype, ()):
        raise ShapeError(f"adds {y} times a scalar to {old}")
    return y


def _into(x: Any, old: Any, alpha: Any, *, beta: float, negate: bool) -> Any:
    return (-alpha if negate else alpha) * x.sum(axis=0, dtype=x.dtype) + old.dtype.type(beta) * old


column_sums_into = define(
    "column_sums_into",  # (+ or -) alpha column_sums + beta old; created by the pass fuse_optimizer
    infer=_into_type,
    ref=_into,
    vjp=None,
    lower=Call(_call, summed=(0,)),
    form=Added("column_sums", into=1),
)
