"""Gradients of convolutions and depthwise convolutions from one s8 operand and the float dy. `conv2d_dx_f32_s8`: the
gradient of the image from dy and the integers of the weights. `conv2d_dw_s8_f32`: the gradient of the weights from dy
and the integers of the image minus the attribute x_zero. `depthwise2d_...` likewise. The caller multiplies dy and the
result by the scales.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...ir.kernel_call import KernelCall
from ...ir.node import Op, Sample, define, in_form
from ...ir.op_forms import ByRows
from ...ir.op_kinds import Attrs, KernelOp, RowContraction
from ...ir.strides import Strided
from ...ir.types import Type
from ..images.convolution import conv2d_dw, conv2d_dx
from ..images.depthwise import depthwise2d_dw, depthwise2d_dx
from ..images.gradient_rows import register_rows
from .limits import is_s8


def _samples(of: Op, quantised: int, **attrs: int) -> tuple[Sample, ...]:
    return tuple(
        Sample(s.inputs, {**s.attrs, **attrs}, dtypes={quantised: "s8"}, integers={quantised: (-9, 10)})
        for s in of.samples
    )


def _register_dx(of: Op) -> Op:
    """The gradient of the image."""
    lower = of.lower
    assert isinstance(lower, KernelOp)

    def infer(dy: Type, w: Type, **attrs: Any) -> Any:
        is_s8(w)
        return of.infer(dy, Type(dy.dtype, w.shape), **attrs)

    def call(layouts: Sequence[Strided], results: Sequence[Type], attrs: Attrs) -> KernelCall:
        return replace(lower.choose(layouts, results, attrs), kernel=name)

    name = f"{of.name}_f32_s8"
    return define(
        name,
        infer=infer,
        ref=lambda dy, w, **attrs: of.ref(dy, w.astype(dy.dtype), **attrs),
        vjp=None,
        lower=replace(lower, choose=call),
        samples=_samples(of, 1),
        torch=f"(lambda a, b: {of.torch})(a, b.to(a.dtype))",
    )


def _register_dw(of: Op) -> Op:
    """The gradient of the weights."""
    lower = of.lower
    assert isinstance(lower, KernelOp)

    def infer(x: Type, dy: Type, *, x_zero: int, **attrs: Any) -> Any:
        is_s8(x)
        return of.infer(Type(dy.dtype, x.shape), dy, **attrs)

    def call(layouts: Sequence[Strided], results: Sequence[Type], attrs: Attrs) -> KernelCall:
        found = lower.choose(layouts, results, attrs)
        return replace(found, kernel=name, sizes={**found.sizes, "x_zero": attrs["x_zero"]})

    name = f"{of.name}_s8_f32"
    made = define(
        name,
        infer=infer,
        ref=lambda x, dy, *, x_zero, **attrs: of.ref(x.astype(dy.dtype) - x_zero, dy, **attrs),
        vjp=None,
        lower=replace(lower, choose=call),
        samples=_samples(of, 0, x_zero=-7),
        torch=f"(lambda a, b: {of.torch})(a.to(b.dtype) - x_zero, b)",
    )
    rows = in_form(of, ByRows)
    assert rows is not None and isinstance(rows.lower, RowContraction)
    register_rows(f"{of.name}_rows_s8_f32", made, rows.lower.by_channel)
    return made


conv2d_dx_f32_s8, depthwise2d_dx_f32_s8 = (_register_dx(op) for op in (conv2d_dx, depthwise2d_dx))
conv2d_dw_s8_f32, depthwise2d_dw_s8_f32 = (_register_dw(op) for op in (conv2d_dw, depthwise2d_dw))
