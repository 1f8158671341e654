"""Products of quantised tensors: convolution, depthwise convolution and dense layers of s8 with s32 sums.

Their operands are x, the weights w, the bias of each output channel, and the multiplier and shift that bring a sum of
that channel to the scale of the result. Attributes: x_zero is the zero point of x, results are limited to low to high,
and `quantization` is the quantisation of the result. Results are equal to the last bit in NumPy and on every core.

Gradients are floats, with respect to the real numbers that integers represent. Rounding passes them; limits do not. Let
g be dy times the scale of w for each output channel. The gradient of x is the product of g and the integers of w. The
gradient of w is the product of g and the integers of x (minus x_zero), times (scale of x) / (scale of w).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...errors import GraphError, ShapeError
from ...ir.build import apply, constant
from ...ir.kernel_call import KernelCall, Operand, Result
from ...ir.names import with_role
from ...ir.node import OPS, Op, OptionalValues, Sample, Value, Values, Wanted
from ...ir.op_kinds import Attrs, KernelOp, Range, Tile
from ...ir.quantization import HIGH, LOW, Quantization, requantized
from ...ir.strides import Strided
from ...ir.types import Shape, Type, planned, s8, s32
from ...ir.windows import Windows
from ..images.window_products import at_tap, conv_shape, macs, size_of
from ..images.window_tiles import CHANNELS
from ..images.windows import Padding, Pair, image_axes, image_shape, image_size, padded
from .limits import Gradients, Limited, is_s8

POINTERS = {name: Operand(i) for i, name in enumerate(("x", "w", "bias", "multiplier", "shift"))} | {
    "y": Result()
}
OF_CHANNELS = (2, 3, 4)  # the operands with one number per output channel


def _scales(numbers: Any) -> Value:
    return constant(numbers.astype(np.float32), role="weight_scales")


def _gradients(dx_of: Callable[..., Value], dw_of: Callable[..., Value]) -> Gradients:
    """The gradients of x, w and bias. dx_of: (g, x, w, attrs) -> dx; dw_of: (x, g, w, attrs) -> dw without the
    scales."""

    def gradients(dy: Value, inputs: Values, attrs: Attrs, wanted: Wanted) -> OptionalValues:
        x, w, *_ = inputs
        of_x, of_w = x.type.quantization, w.type.quantization
        assert of_x is not None
        if of_w is None:
            raise GraphError(f"no gradient passes the weights {w!r}, whose scales are not known")
        scales = _scales(np.array(of_w.scales))  # one table for all readers
        g = with_role(apply("mul", dy, scales), "scaled_gradient")
        found: list[Value | None] = [dx_of(g, x, w, attrs) if wanted[0] else None, None, None, None, None]
        if wanted[1]:
            dw = with_role(dw_of(x, g, w, attrs), "weight_gradient_sums")
            scaled = apply("mul", dw, constant(of_x.scale))
            found[1] = apply("div", scaled, _scales(of_w.along(planned(w.shape))))
        if wanted[2]:
            total = apply("sum", g, axes=tuple(range(dy.ndim - 1)), keepdim=False)
            found[2] = apply("div", with_role(total, "bias_gradient_sums"), scales)
        return found

    return gradients


def _channels(o: int, *of_channels: Type) -> None:
    """Raise ShapeError unless bias, multiplier and shift have one number for each of `o` output channels."""
    for (name, dtype), t in zip(
        {"bias": s32, "multiplier": s32, "shift": s8}.items(), of_channels, strict=True
    ):
        if t.dtype is not dtype or t.shape != (o,):
            raise ShapeError(f"{name} must be {dtype}[{o}], not {t}")


def _unlimited(sums: Any, multiplier: Any, shift: Any, attrs: Attrs) -> Any:
    """The result's integers before they are limited. sums: exact sums, float64 or s32, with channels last."""
    return requantized(sums, multiplier, shift).astype(np.int64) + attrs["quantization"].zero_point


def _numbers(attrs: Attrs) -> dict[str, int]:
    zero = attrs["quantization"].zero_point
    return {"x_zero": attrs["x_zero"], "y_zero": zero, "low": attrs["low"], "high": attrs["high"]}


@dataclass(frozen=True)
class _Convolution:
    """A convolution. channels: (type of w, channels of x, groups) -> output channels. window: shape of w -> rows and
    columns of a window. product: (x at element (i, j) of all windows, w, i, j, groups) -> the sums over the channels.
    float_op: the op on floats, which has the same tiles. in_place: the kernel that stores the result in the memory of x
    if the result is not larger, or ""."""

    name: str
    channels: Callable[[Type, int, int], int]
    window: Callable[[Sequence[Any]], Any]
    product: Callable[[Any, Any, int, int, int], Any]
    float_op: str
    in_place: str = ""

    def infer(
        self,
        x: Type,
        w: Type,
        bias: Type,
        multiplier: Type,
        shift: Type,
        *,
        quantization: Quantization,
        **attrs: Any,
    ) -> Type:
        is_s8(x, w)
        h, width, c = image_axes(x)
        o = self.channels(w, c, attrs.get("groups", c))
        _channels(o, bias, multiplier, shift)
        return Type(
            s8, image_shape(x.shape, size_of((h, width), self.window(w.shape), attrs), o), quantization
        )

    def unlimited(self, x: Any, w: Any, bias: Any, multiplier: Any, shift: Any, **attrs: Any) -> Any:
        kernel = self.window(w.shape)
        out = size_of(x.shape[1:3], kernel, attrs)
        centred = x.astype(np.float64) - attrs["x_zero"]
        wide = padded(centred, kernel, attrs["stride"], attrs["padding"], attrs["dilation"], out, 0.0)
        sums: Any = bias.astype(np.float64)
        for i, j in np.ndindex(*kernel):
            taken = wide[at_tap(i, j, out, attrs)]
            sums = sums + self.product(taken, w.astype(np.float64), i, j, attrs.get("groups", 1))
        return _unlimited(sums, multiplier, shift, attrs)

    def call(self, layouts: Sequence[Strided], results: Sequence[Type], attrs: Attrs) -> KernelCall:
        x, w = layouts[:2]
        o = results[0].shape[3]
        assert isinstance(o, int)
        shape = conv_shape(
            x, image_size(x.shape), self.window(w.shape), image_size(results[0].shape), o, attrs
        )
        fits = shape["oh"] <= shape["h"] and shape["ow"] <= shape["w"]
        sizes = {"n": x.shape[0], **_numbers(attrs)}
        return KernelCall(self.name, POINTERS, sizes, shape=shape, in_place=self.in_place if fits else "")

    def tile(self, at: Range, shapes: Sequence[Shape], attrs: Attrs) -> Tile | None:
        lower = OPS[self.float_op].lower
        assert isinstance(lower, KernelOp)
        found = lower.tile(at, shapes, attrs)
        if found is None or at.axis != CHANNELS:
            return found
        return Tile({**found.ranges, **{k: replace(at, axis=0) for k in OF_CHANNELS}})

    def register(self, samples: Sequence[Sample]) -> Op:
        lower = KernelOp(self.call, macs, strided=(0,), tile=self.tile)
        gradients = _gradients(self.dx, self.dw)
        return Limited(
            self.name, self.infer, self.unlimited, gradients, lower, tuple(samples), self.windows
        ).register()

    def windows(self, shapes: Sequence[Shape], attrs: Attrs) -> Windows:
        return Windows(0, self.window(shapes[1]), border=float(attrs["x_zero"]))

    def shared(self, attrs: Attrs) -> dict[str, Any]:
        """The attributes that the ops of the gradients have too."""
        return {k: attrs[k] for k in ("stride", "padding", "dilation", "groups") if k in attrs}

    def dx(self, g: Value, x: Value, w: Value, attrs: Attrs) -> Value:
        return apply(f"{self.float_op}_dx_f32_s8", g, w, size=x.type.shape[1:3], **self.shared(attrs))

    def dw(self, x: Value, g: Value, w: Value, attrs: Attrs) -> Value:
        window, of = self.window(w.type.shape), {"x_zero": attrs["x_zero"], **self.shared(attrs)}
        return apply(f"{self.float_op}_dw_s8_f32", x, g, kernel=window, **of)


def _filters(w: Type, c: int, groups: int) -> int:
    if len(w.shape) != 4 or c % groups or w.shape[3] != c // groups:
        raise ShapeError(f"the weights must be [out, kh, kw, {c} / groups]")
    o = w.shape[0]
    assert isinstance(o, int)
    if o % groups:
        raise ShapeError(f"{o} output channels are not divisible by groups={groups}")
    return o


def _one_filter_each(w: Type, c: int, groups: int) -> int:
    if len(w.shape) != 3 or w.shape[2] != c:
        raise ShapeError(f"the weights must be [kh, kw, {c}]")
    return c


def _of_groups(x: Any, w: Any, i: int, j: int, groups: int) -> Any:
    parts = zip(np.split(x, groups, -1), np.split(w[:, i, j], groups), strict=True)
    return np.concatenate([part @ filters.T for part, filters in parts], -1)


def _sample(x: tuple[int, ...], w: tuple[int, ...], o: int, **attrs: Any) -> Sample:
    numbers = {"x_zero": -7, "quantization": Quantization((0.1,), 9), "low": -90, "high": 111}
    kinds = ("s8", "s8", "s32", "s32", "s8")
    ranges = ((LOW, HIGH + 1), (LOW, HIGH + 1), (-500, 500), (2**30, 2**31), (-8, -5))
    shapes = (x, w, (o,), (o,), (o,))
    return Sample(
        shapes, {**attrs, **numbers}, dtypes=dict(enumerate(kinds)), integers=dict(enumerate(ranges))
    )


def windows_s8(
    stride: Pair = (1, 1), padding: Padding = (0, 0, 0, 0), dilation: Pair = (1, 1)
) -> dict[str, Any]:
    """The attributes of the geometry; padding is top, bottom, left, right."""
    return {"stride": stride, "padding": padding, "dilation": dilation}


conv2d_s8 = _Convolution(
    "conv2d_s8",
    _filters,
    lambda w: w[1:3],
    _of_groups,
    "conv2d",
).register(
    (
        _sample((2, 4, 5, 3), (4, 3, 2, 3), 4, groups=1, **windows_s8()),
        _sample((1, 5, 5, 4), (6, 3, 3, 2), 6, groups=2, **windows_s8((2, 2), (1, 1, 1, 1))),
        _sample((1, 6, 4, 1), (1, 2, 3, 1), 1, groups=1, **windows_s8((1, 2), (1, 0, 0, 2), (2, 1))),
    )
)

depthwise2d_s8 = _Convolution(
    "depthwise2d_s8",
    _one_filter_each,
    lambda w: w[:2],
    lambda x, w, i, j, groups: x * w[i, j],
    "depthwise2d",
    "depthwise2d_in_place_s8",
).register(
    (
        _sample((2, 4, 5, 3), (3, 2, 3), 3, **windows_s8()),
        _sample((1, 5, 5, 2), (3, 3, 2), 2, **windows_s8((2, 2), (1, 1, 1, 1))),
    )
)


def _dense_type(x: Type, w: Type, bias: Type, multiplier: Type, shift: Type, **attrs: Any) -> Type:
    is_s8(x, w)
    if len(x.shape) != 2 or len(w.shape) != 2 or x.shape[1] != w.shape[1]:
        raise ShapeError("needs x[m, k] and weights [n, k]")
    n = w.shape[0]
    assert isinstance(n, int)
    _channels(n, bias, multiplier, shift)
    return Type(s8, (x.shape[0], n), attrs["quantization"])


def _dense(x: Any, w: Any, bias: Any, multiplier: Any, shift: Any, **attrs: Any) -> Any:
    sums = (x.astype(np.float64) - attrs["x_zero"]) @ w.astype(np.float64).T + bias
    return _unlimited(sums, multiplier, shift, attrs)


def _dense_call(layouts: Sequence[Strided], results: Sequence[Type], attrs: Attrs) -> KernelCall:
    (m, k), n = layouts[0].shape, results[0].shape[1]
    sizes = {"m": m, "n": n, "k": k, **_numbers(attrs), "per_channel": int(attrs["per_channel"])}
    return KernelCall("dense_s8", POINTERS, sizes)


def _dense_macs(call: KernelCall) -> int:
    m, n, k = planned(tuple(call.sizes[name] for name in "mnk"))
    return m * n * k


def _dense_tile(at: Range, shapes: Sequence[Shape], attrs: Attrs) -> Tile | None:
    if at.axis == 0:
        return Tile({0: at})
    return Tile({k: replace(at, axis=0) for k in (1, *OF_CHANNELS)})


_ONE = {
    "stride": (1, 1),
    "padding": (0, 0, 0, 0),
    "dilation": (1, 1),
    "groups": 1,
}  # attributes of a 1 x 1 window


def _dense_dx(g: Value, x: Value, w: Value, attrs: Attrs) -> Value:
    """Computed by the gradient of a 1 x 1 convolution, whose kernel needs no copy of the weights as floats."""
    (m, n), k = g.shape, w.shape[1]
    image, filters = apply("reshape", g, shape=(m, 1, 1, n)), apply("reshape", w, shape=(n, 1, 1, k))
    dx = apply("conv2d_dx_f32_s8", image, filters, size=(1, 1), **_ONE)
    return apply("reshape", dx, shape=(m, k))


def _dense_dw(x: Value, g: Value, w: Value, attrs: Attrs) -> Value:
    integers = apply("dequantize", x, constant(1.0), zero=attrs["x_zero"])
    return apply("matmul", apply("permute", g, dims=(1, 0)), integers)


dense_s8 = Limited(
    "dense_s8",  # y[m, n] = x[m, k] . w[n, k]'; per_channel: whether multipliers or shifts differ
    infer=_dense_type,
    unlimited=_dense,
    gradients=_gradients(_dense_dx, _dense_dw),
    lower=KernelOp(_dense_call, _dense_macs, tile=_dense_tile),
    samples=(
        _sample((3, 7), (4, 7), 4, per_channel=True),
        _sample((1, 1), (1, 1), 1, per_channel=False),
    ),
).register()
