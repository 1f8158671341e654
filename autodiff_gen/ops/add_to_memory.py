"""Ops that add the result of another op to memory, y = (+ or -) alpha term + beta old, with the attributes `beta` and
`negate`. They are made by the pass fuse_optimizer, after differentiation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..errors import ShapeError
from ..ir.kernel_call import Factor, KernelCall, Scalar
from ..ir.node import Op, define
from ..ir.op_forms import AddedToMemory
from ..ir.op_kinds import Attrs, KernelOp
from ..ir.strides import Strided
from ..ir.types import Shape, Type
from ..ir.windows import Windows

OVERWRITES: dict[str, Factor] = {
    "alpha": 1.0,
    "beta": 0.0,
}  # the factors of a call that ignores the old value


def register_added(name: str, op: Op) -> Op:
    """The op `name`, which adds the result of `op` to memory. Its operands are the operands of `op`, the old value and
    alpha. The kernel of `op` has the factors alpha and beta."""

    def infer(*types: Type, beta: float, negate: bool, **attrs: Any) -> Type:
        *operands, old, alpha = types
        term = op.infer(*operands, **attrs)
        if term != old or alpha != Type(old.dtype, ()):
            raise ShapeError(f"adds {term} times a scalar to {old}")
        return old

    def ref(*arrays: Any, beta: float, negate: bool, **attrs: Any) -> Any:
        *operands, old, alpha = arrays
        return sum_of(op.ref(*operands, **attrs), old, alpha, beta=beta, negate=negate)

    def choose(layouts: Sequence[Strided], results: Sequence[Type], attrs: Attrs) -> KernelCall:
        assert isinstance(op.lower, KernelOp)
        call = op.lower.choose(layouts[:-2], results, attrs)
        return replace(call, factors=factors_of(len(layouts) - 1, attrs))

    def windows(shapes: Sequence[Shape], attrs: Attrs) -> Windows | None:
        of = op.windows(shapes[:-2], attrs)
        return replace(of, weights=(*of.weights, len(shapes) - 2)) if of and of.is_gradient else of

    lower = op.lower
    if isinstance(lower, KernelOp):
        lower = KernelOp(choose, lower.macs, lower.strided, lower.summed)
    return define(name, infer, ref, None, lower, form=AddedToMemory(op.name), windows=windows)


def factors_of(alpha: int, attrs: Attrs) -> dict[str, Factor]:
    """The factors of a call that adds to memory; alpha: the index of that operand."""
    return {"alpha": Scalar(alpha, attrs["negate"]), "beta": attrs["beta"]}


def sum_of(term: Any, old: Any, alpha: Any, *, beta: float, negate: bool) -> Any:
    return (-alpha if negate else alpha) * term + old.dtype.type(beta) * old
