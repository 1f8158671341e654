"""Ops with an epilogue, y = min(max(scale * y + bias + residual, low), high). Each part may be missing; the limits
apply if low < high. The pass fuse_epilogues makes these ops, after differentiation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...ir.kernel_call import Epilogue, KernelCall
from ...ir.node import Op, Sample, define
from ...ir.op_forms import WithEpilogue
from ...ir.op_kinds import Attrs, KernelOp, Range, Tile
from ...ir.strides import Strided
from ...ir.types import Shape, Type, f32

FACTORS = 2  # the operands of the op itself; operands of the epilogue follow


def register_with_epilogue(name: str, op: Op) -> Op:
    """The op `name`, which computes `op` and then an epilogue. The attribute `epilogue` lists the names of the operands
    after the operands of `op`, `low` and `high` are the limits, and `activation` is the name of the op that sets them,
    for comments."""

    def infer(
        *types: Type, epilogue: Sequence[str], activation: str, low: float, high: float, **attrs: Any
    ) -> Type:
        y = op.infer(*types[:FACTORS], **attrs)
        assert isinstance(y, Type)
        for name, given in zip(epilogue, types[FACTORS:], strict=True):
            wanted = y if name == "residual" else Type(y.dtype, y.shape[-1:])
            if given != wanted:
                raise ShapeError(f"the {name} is {given}, and must be {wanted}")
        return y

    def ref(
        *arrays: Any, epilogue: Sequence[str], activation: str, low: float, high: float, **attrs: Any
    ) -> Any:
        given = dict(zip(epilogue, arrays[FACTORS:], strict=True))
        y = op.ref(*arrays[:FACTORS], **attrs) * given.get("scale", 1)
        y = y + given.get("bias", 0) + given.get("residual", 0)
        return np.minimum(np.maximum(y, low), high) if low < high else y

    def choose(layouts: Sequence[Strided], results: Sequence[Type], attrs: Attrs) -> KernelCall:
        assert isinstance(op.lower, KernelOp)
        call = op.lower.choose(layouts[:FACTORS], results, attrs)
        return replace(call, epilogue=Epilogue.of(attrs))

    def tile(at: Range, shapes: Sequence[Shape], attrs: Attrs) -> Tile | None:
        assert isinstance(op.lower, KernelOp)
        found, last = op.lower.tile(at, shapes[:FACTORS], attrs), len(shapes[0]) - 1
        if found is None:
            return None
        more = {
            FACTORS + k: at if name == "residual" else replace(at, axis=0)
            for k, name in enumerate(attrs["epilogue"])
            if name == "residual" or at.axis == last
        }
        return replace(found, ranges={**found.ranges, **more})

    lower = op.lower
    if isinstance(lower, KernelOp):
        lower = KernelOp(choose, lower.macs, lower.strided, tile=tile)
    form = WithEpilogue(op.name)
    return define(name, infer=infer, ref=ref, vjp=None, lower=lower, samples=_samples(op), form=form)


# The epilogue of each sample: operands and limits.
_EPILOGUES: tuple[tuple[tuple[str, ...], tuple[float, float]], ...] = (
    (("scale",), (0.0, 0.0)),
    (("bias",), (0.0, math.inf)),
    (("scale", "bias", "residual"), (-0.5, 1.5)),
)


def _samples(op: Op) -> tuple[Sample, ...]:
    out = []
    for sample, (names, (low, high)) in zip(op.samples, _EPILOGUES, strict=False):
        y = op.infer(*(Type(f32, shape) for shape in sample.inputs), **sample.attrs)
        assert isinstance(y, Type)
        shape = tuple(d for d in y.shape if isinstance(d, int))
        more = tuple(shape if name == "residual" else shape[-1:] for name in names)
        attrs = {"epilogue": names, "activation": "hardtanh" if low < high else "", "low": low, "high": high}
        out.append(Sample((*sample.inputs, *more), {**sample.attrs, **attrs}))
    return tuple(out)
