"""Convolution-like ops y = f(x, w) of images and windows of weights, which are linear in each operand.

The adjoints are ops too. Each of the three ops is an adjoint of the others, so that their VJPs need no further ops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...ir.build import apply
from ...ir.kernel_call import KernelCall, Operand, Result
from ...ir.node import Op, Sample, Value, register
from ...ir.op_kinds import Attrs, KernelOp, Range, Tile
from ...ir.strides import Strided, dense
from ...ir.types import Shape, Size, Type, planned
from ...ir.windows import Windows
from ..add_to_memory import OVERWRITES, register_added
from ..products.epilogue import register_with_epilogue
from ..support import by_operand
from .gradient_rows import register_rows
from .window_tiles import CHANNELS, COLUMNS, ROWS, of_gradient, of_windows
from .windows import Pair, geometry, image_size, output_size, padded, tap

Row = tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]  # a sample: image, weights, attributes
Three = tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]


def size_of(size: Pair, kernel: Pair, attrs: Attrs) -> Pair:
    """Rows and columns of y."""
    return output_size(size, kernel, attrs["stride"], attrs["padding"], attrs["dilation"])


def with_border(x: Any, kernel: Pair, out: Pair, attrs: Attrs) -> Any:
    """The array x, zero-padded to the extent of the windows."""
    return padded(x, kernel, attrs["stride"], attrs["padding"], attrs["dilation"], out, 0.0)


def at_tap(i: int, j: int, out: Pair, attrs: Attrs) -> tuple[slice, slice, slice]:
    """The index of element (i, j) of all windows in a padded array."""
    return tap(i, j, attrs["stride"], attrs["dilation"], out)


def conv_shape(x: Strided, size: Pair, kernel: Pair, out: Pair, o: int, attrs: Attrs) -> dict[str, int]:
    """The fields of ag_conv2d_shape for y, dx or dw of a convolution of the image x; without the attribute groups, of a
    depthwise convolution.
    """
    fields = geometry(x, size, kernel, attrs["stride"], attrs["padding"], attrs["dilation"], out)
    del fields["pad_bottom"], fields["pad_right"]
    c = x.shape[3]
    assert isinstance(c, int)
    return {**fields, "c": c, "o": o, "groups": attrs.get("groups", c), "ldy": o}


def macs(call: KernelCall, rows: str = "oh", columns: str = "ow") -> int:
    """Multiply-accumulates of a product of windows: each element of y sums over a window."""
    s, (n,) = call.shape, planned((call.sizes["n"],))
    return n * s[rows] * s[columns] * s["o"] * s["kh"] * s["kw"] * (s["c"] // s.get("groups", 1))


def _channels(shape: Shape) -> int:
    assert isinstance(shape[-1], int)
    return shape[-1]


_ZEROS = "(torch.zeros({}, dtype=a.dtype, requires_grad=True))"


@dataclass(frozen=True)
class WindowProduct:
    """The ops `name`: y from x and w; `name`_dx: dx from dy and w, with the attribute size (rows and columns of x);
    `name`_dw: dw from x and dy, with the attribute kernel (rows and columns of a window); `name`_dw_into, which
    adds a multiple of dw to old weights; `name`_dw_rows (gradient_rows.py); and `name`_epilogue (epilogue.py). Kernels
    have the names of the ops.

    attributes: names of the common attributes. window: shape of w -> rows and columns of a window. infer, ref: for y,
    dx and dw. rows: samples. outputs: the shape of y for a sample. torch: the expression of y, a template in x and w;
    torch_x, torch_w: the shape of x in terms of a = dy and b = w, and the shape of w in terms of a = x and b = dy.
    channels: attributes -> the axes of w along the channels of x and along the channels of y; one axis twice if a
    channel of y depends on one channel of x; None if channels are in groups.
    """

    name: str
    attributes: tuple[str, ...]
    window: Callable[[Sequence[Any]], Any]
    infer: Three
    ref: Three
    rows: tuple[Row, ...]
    outputs: Callable[..., tuple[int, ...]]
    torch: str
    torch_x: str
    torch_w: str
    channels: Callable[[Attrs], tuple[int, int] | None]

    def register(self) -> tuple[Op, Op, Op, Op]:
        """Register the ops; returns `name`, `name`_dx, `name`_dw and `name`_dw_into."""
        y, dx, dw = self._op_of_y(), self._op_of_dx(), self._op_of_dw()
        register_with_epilogue(f"{self.name}_epilogue", register(y))
        register_rows(f"{self.name}_dw_rows", dw, by_channel=not self._sums_channels(self.rows[0][2]))
        return y, register(dx), register(dw), register_added(f"{self.name}_dw_into", dw)

    def _op_of_y(self) -> Op:
        return Op(
            self.name,
            infer=self.infer[0],
            ref=self.ref[0],
            vjp=by_operand(
                lambda g, x, w, y, attrs: self._dx(g, w, x, attrs),
                lambda g, x, w, y, attrs: self._dw(x, g, w, attrs),
            ),
            lower=KernelOp(self._call, macs, strided=(0,), tile=self._tile, term_of=self._term_of),
            samples=tuple(Sample((x, w), attrs) for x, w, attrs in self.rows),
            torch=self.torch.format(x="a", w="b"),
            factors=(0, 1),
            windows=lambda shapes, attrs: Windows(
                0,
                self.window(shapes[1]),
                border=0.0,
                filters=self._filters(shapes[1][0], attrs),
                weights=(1,),
            ),
        )

    def _op_of_dx(self) -> Op:
        gradient = f"torch.autograd.grad({self.torch.format(x='x', w='b')}, x, a, create_graph=True)[0]"
        return Op(
            f"{self.name}_dx",
            infer=self.infer[1],
            ref=self.ref[1],
            vjp=by_operand(
                lambda g, dy, w, dx, attrs: self._y(g, w, attrs),
                lambda g, dy, w, dx, attrs: self._dw(g, dy, w, attrs),
            ),
            lower=KernelOp(self._dx_call, macs, tile=self._dx_tile, term_of=self._dx_term_of),
            samples=tuple(Sample((self.outputs(x, w, a), w), {**a, "size": x[1:3]}) for x, w, a in self.rows),
            torch=f"(lambda x: {gradient})" + _ZEROS.format(self.torch_x),
        )

    def _op_of_dw(self) -> Op:
        gradient = f"torch.autograd.grad({self.torch.format(x='a', w='w')}, w, b, create_graph=True)[0]"
        return Op(
            f"{self.name}_dw",
            infer=self.infer[2],
            ref=self.ref[2],
            vjp=by_operand(
                lambda g, x, dy, dw, attrs: self._dx(dy, g, x, attrs),
                lambda g, x, dy, dw, attrs: self._y(x, g, attrs),
            ),
            lower=KernelOp(
                self._dw_call,
                macs,
                strided=(0,),
                summed=(0, 1),
                tile=self._dw_tile,
                term_of=self._dw_term_of,
            ),
            samples=tuple(
                Sample((x, self.outputs(x, w, a)), {**a, "kernel": self.window(w)}) for x, w, a in self.rows
            ),
            torch=f"(lambda w: {gradient})" + _ZEROS.format(self.torch_w),
            windows=lambda shapes, attrs: Windows(
                0, attrs["kernel"], filters=self._filters(shapes[1][-1], attrs), is_gradient=True
            ),
        )

    def _filters(self, count: Size, attrs: Attrs) -> Size:
        """The number of filters, `count`, if each is multiplied by all channels of a window; otherwise 0."""
        return count if self._sums_channels(attrs) else 0

    # Calls

    def _call(self, layouts: Sequence[Strided], results: Sequence[Type], attrs: Attrs) -> KernelCall:
        (x, w), (y,) = layouts, results
        window, out = self.window(w.shape), image_size(y.shape)
        shape = conv_shape(x, image_size(x.shape), window, out, _channels(y.shape), attrs)
        pointers = {"x": Operand(0), "w": Operand(1), "y": Result()}
        return KernelCall(f"{self.name}_f32", pointers, {"n": x.shape[0]}, shape=shape)

    def _dx_call(self, layouts: Sequence[Strided], results: Sequence[Type], attrs: Attrs) -> KernelCall:
        (dy, w), (dx,) = layouts, results
        window, out = self.window(w.shape), image_size(dy.shape)
        shape = conv_shape(dense(dx.shape), attrs["size"], window, out, _channels(dy.shape), attrs)
        pointers = {"dy": Operand(0), "w": Operand(1), "dx": Result()}
        return KernelCall(f"{self.name}_dx_f32", pointers, {"n": dy.shape[0]}, shape=shape)

    def _dw_call(self, layouts: Sequence[Strided], results: Sequence[Type], attrs: Attrs) -> KernelCall:
        x, dy = layouts
        out = image_size(dy.shape)
        shape = conv_shape(x, image_size(x.shape), attrs["kernel"], out, _channels(dy.shape), attrs)
        pointers = {"x": Operand(0), "dy": Operand(1), "dw": Result()}
        return KernelCall(f"{self.name}_dw_f32", pointers, {"n": x.shape[0]}, OVERWRITES, shape)

    # Tiles

    def _sums_channels(self, attrs: Attrs) -> bool:
        """Whether a channel of y sums over all channels of x."""
        axes = self.channels(attrs)
        return axes is not None and axes[0] != axes[1]

    def _of_channels(self, k: int, attrs: Attrs) -> Mapping[int, int]:
        """Operand -> axis, for the channels of the operands from which a channel of the result is computed. k = 0: the
        result is dx, from dy and w; k = 1: the result is y, from x and w."""
        axes = self.channels(attrs)
        if axes is None:
            return {}
        return {0: CHANNELS, 1: axes[k]} if axes[0] == axes[1] else {1: axes[k]}

    def _tile(self, at: Range, shapes: Sequence[Shape], attrs: Attrs) -> Tile | None:
        return self._of_image(1, of_windows, at, shapes, attrs)

    def _of_image(
        self, k: int, part: Callable[..., Any], at: Range, shapes: Sequence[Shape], attrs: Attrs
    ) -> Tile | None:
        """The tile of dx (k = 0) or of y (k = 1). part: (a range of rows or columns of the result, the shape of the
        image operand, rows and columns of a window, attributes) -> the range of the image operand, and changed
        attributes."""
        if at.axis in (ROWS, COLUMNS):
            found = part(at, shapes[0], self.window(shapes[1]), attrs)
            return None if found is None else Tile({0: found[0]}, found[1])
        axes = {0: 0} if at.axis == 0 else self._of_channels(k, attrs)
        return Tile({operand: replace(at, axis=axis) for operand, axis in axes.items()}) if axes else None

    def _term_of(self, operand: int, at: Range, shapes: Sequence[Shape], attrs: Attrs) -> Tile | None:
        if operand or at.axis != CHANNELS or not self._sums_channels(attrs):
            return None
        return Tile({0: at, 1: replace(at, axis=len(shapes[1]) - 1)})

    def _dx_tile(self, at: Range, shapes: Sequence[Shape], attrs: Attrs) -> Tile | None:
        return self._of_image(0, of_gradient, at, shapes, attrs)

    def _dx_term_of(self, operand: int, at: Range, shapes: Sequence[Shape], attrs: Attrs) -> Tile | None:
        if operand or at.axis != CHANNELS or not self._sums_channels(attrs):
            return None
        return Tile({0: at, 1: replace(at, axis=0)})

    def _dw_tile(self, at: Range, shapes: Sequence[Shape], attrs: Attrs) -> Tile | None:
        axes = enumerate(self.channels(attrs) or ())
        found = {k: replace(at, axis=CHANNELS) for k, axis in axes if axis == at.axis}
        return Tile(found) if found else None

    def _dw_term_of(self, operand: int, at: Range, shapes: Sequence[Shape], attrs: Attrs) -> Tile | None:
        if at.axis == 0:
            return Tile({0: at, 1: at})
        if operand != 1 or at.axis not in (ROWS, COLUMNS):
            return None
        found = of_windows(at, shapes[0], attrs["kernel"], attrs)
        return None if found is None else Tile({0: found[0], 1: at}, found[1])

    # Adjoints

    def _shared(self, attrs: Attrs) -> dict[str, Any]:
        return {k: attrs[k] for k in self.attributes}

    def _y(self, x: Value, w: Value, attrs: Attrs) -> Value:
        return apply(self.name, x, w, **self._shared(attrs))

    def _dx(self, dy: Value, w: Value, x: Value, attrs: Attrs) -> Value:
        return apply(f"{self.name}_dx", dy, w, size=x.type.shape[1:3], **self._shared(attrs))

    def _dw(self, x: Value, dy: Value, w: Value, attrs: Attrs) -> Value:
        return apply(f"{self.name}_dw", x, dy, kernel=self.window(w.type.shape), **self._shared(attrs))
