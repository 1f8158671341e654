"""The gradient of a convolution's weights, completed row by row: an op of dy[o, pixels] and x, whose result is the
matrix dw[o, elements of a filter]. The pass fuse_optimizer creates it, after differentiation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...errors import ShapeError
from ...ir.build import apply
from ...ir.kernel_call import KernelCall, Operand
from ...ir.node import Op, Value, define
from ...ir.op_forms import ByRows
from ...ir.op_kinds import Attrs, KernelOp, RowContraction
from ...ir.strides import Strided, dense
from ...ir.types import Shape, Type, planned_size, product
from ...ir.windows import Windows
from .windows import image_size, output_size


def register_rows(name: str, of: Op, by_channel: bool) -> Op:
    """The op `name`, which computes the result dw of `of`, a gradient of weights, row by row. by_channel: a row belongs
    to a channel of x, and dw is stored with the channels last, as the weights of depthwise convolutions are."""
    lower = of.lower
    assert isinstance(lower, KernelOp)

    def made(operands: Sequence[Value], attrs: Attrs) -> Value | None:
        x, dy = operands
        if attrs.get("groups", 1) != 1:
            return None
        pixels = apply("reshape", dy, shape=(product(dy.type.shape[:-1]), dy.type.shape[-1]))
        rows = apply(name, apply("permute", pixels, dims=(1, 0)), x, **attrs)
        return apply("permute", rows, dims=(1, 0)) if by_channel else rows

    def in_one_call(operands: Sequence[Value], attrs: Attrs) -> Value:
        dy, x = operands
        pixels = apply("permute", dy, dims=(1, 0))
        dw = apply(
            of.name, x, apply("reshape", pixels, shape=_image(dy.type.shape, x.type.shape, attrs)), **attrs
        )
        shape = dw.type.shape
        if by_channel:
            return apply("permute", apply("reshape", dw, shape=(product(shape[:-1]), shape[-1])), dims=(1, 0))
        return apply("reshape", dw, shape=(shape[0], product(shape[1:])))

    def infer(dy: Type, x: Type, **attrs: Any) -> Type:
        image = dy.with_shape(_image(dy.shape, x.shape, attrs))
        if image.bytes != dy.bytes:
            raise ShapeError(f"{dy} is no gradient of {image}")
        dw = of.infer(x, image, **attrs)
        assert isinstance(dw, Type)
        rows = planned_size(dy.shape[:1])
        return dy.with_shape((rows, planned_size(dw.shape) // rows))

    def ref(dy: Any, x: Any, **attrs: Any) -> Any:
        dw = of.ref(x, dy.T.reshape(_image(dy.shape, x.shape, attrs)), **attrs)
        return dw.reshape(-1, len(dy)).T if by_channel else dw.reshape(len(dy), -1)

    def call(layouts: Sequence[Strided], rows: int, attrs: Attrs) -> KernelCall:
        dy, x = layouts
        found = lower.choose([x, dense(_image((rows,), x.shape, attrs))], (), attrs)
        channels = {"c": rows, "groups": rows} if by_channel else {}
        return replace(
            found,
            pointers={**found.pointers, "x": Operand(1), "dy": Operand(0)},
            shape={**found.shape, "ldy": dy.strides[1], **channels},
        )

    def windows(shapes: Sequence[Shape], attrs: Attrs) -> Windows | None:
        dy, x = shapes
        found = of.windows((x, _image(dy, x, attrs)), attrs)
        return None if found is None else replace(found, image=1, is_gradient=False)

    form = ByRows(of.name, made, in_one_call)
    return define(name, infer, ref, None, RowContraction(call, by_channel), form=form, windows=windows)


def _image(dy: Shape, x: Shape, attrs: Attrs) -> Shape:
    """The shape [n, h, w, o] of the gradient dy[o, pixels] of an image that is computed from x."""
    size = output_size(image_size(x), attrs["kernel"], attrs["stride"], attrs["padding"], attrs["dilation"])
    return (x[0], *size, dy[0])
