"""y = alpha x + beta y for vectors in memory, by a kernel; created by the pass fuse_optimizer."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import ShapeError
from ...ir.kernel_call import KernelCall, Operand, Result
from ...ir.node import Sample, define
from ...ir.op_forms import AddedToMemory
from ...ir.op_kinds import Attrs, KernelOp
from ...ir.strides import Strided
from ...ir.types import Type
from ..add_to_memory import factors_of, sum_of


def _type(x: Type, old: Type, alpha: Type, *, beta: float, negate: bool) -> Type:
    if x.dtype.kind != "f" or len(x.shape) != 1 or x != old or alpha != Type(x.dtype, ()):
        raise ShapeError(f"adds {x} times a scalar to {old}; needs two vectors of floats")
    return x


def _call(layouts: Sequence[Strided], results: Sequence[Type], attrs: Attrs) -> KernelCall:
    pointers = {"x": Operand(0), "y": Result()}
    return KernelCall("axpby_f32", pointers, {"n": layouts[0].shape[0]}, factors_of(2, attrs))


axpby = define(
    "axpby",  # y[n] = (+ or -) alpha x[n] + beta old[n]
    infer=_type,
    ref=sum_of,
    vjp=None,
    lower=KernelOp(_call, summed=(0,)),
    form=AddedToMemory(""),
    samples=(Sample(((9,), (9,), ()), {"beta": 1.0, "negate": True}),),
)
