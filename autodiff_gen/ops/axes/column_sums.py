"""Column sums of a matrix in memory, by a kernel; created by the pass select_column_sums from `sum`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...errors import ShapeError
from ...ir.build import apply
from ...ir.kernel_call import KernelCall, Operand, Result
from ...ir.node import Sample, define
from ...ir.op_kinds import Attrs, KernelOp, Tile
from ...ir.strides import Strided
from ...ir.types import Type
from ..add_to_memory import OVERWRITES, register_added
from ..support import by_operand


def _type(x: Type) -> Type:
    if x.dtype.kind != "f" or len(x.shape) != 2:
        raise ShapeError("needs a matrix of floats")
    return Type(x.dtype, x.shape[1:])


def _call(layouts: Sequence[Strided], results: Sequence[Type], attrs: Attrs) -> KernelCall:
    m, n = layouts[0].shape
    sizes = {"lda": layouts[0].strides[0], "m": m, "n": n}
    return KernelCall("column_sums_f32", {"a": Operand(0), "y": Result()}, sizes, OVERWRITES)


column_sums = define(
    "column_sums",  # y[n] = the sum of x[m, n] over ascending m
    infer=_type,
    ref=lambda x: x.sum(axis=0, dtype=x.dtype),
    vjp=by_operand(lambda dy, x, y, attrs: apply("broadcast_to", dy, shape=x.type.shape)),
    lower=KernelOp(
        _call,
        summed=(0,),
        tile=lambda at, shapes, attrs: Tile({0: replace(at, axis=1)}),
        term_of=lambda operand, at, shapes, attrs: Tile({0: at}) if at.axis == 0 else None,
    ),
    samples=(Sample(((5, 3),)), Sample(((1, 1),)), Sample(((7, 9),)), Sample(((4, 19),))),
    torch="torch.sum(a, dim=0)",
)

column_sums_into = register_added("column_sums_into", column_sums)
