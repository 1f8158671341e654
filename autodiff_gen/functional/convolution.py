"""Convolution, as in torch.nn.functional, of images [N, C, H, W] or [C, H, W]; [N, C, L] or [C, L] for one axis."""

from __future__ import annotations

from typing import Any

from ..errors import ShapeError
from ..ir.build import apply
from ..ir.names import with_role
from ..ir.node import Value
from .arguments import TensorLike, as_value, shape_error
from .joining import pad
from .shapes import reshape
from .slicing import whole
from .windows import Numbers, Padding, Pair, applied, images, on_both_sides, pair

__all__ = ["conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d"]


def conv1d(
    input: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: Numbers = 1,
    padding: Numbers | str = 0,
    dilation: Numbers = 1,
    groups: int = 1,
) -> Value:
    """[N, in, L], [out, in / groups, k] -> [N, out, windows]: conv2d along one axis."""
    return _convolved("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: Numbers = 1,
    padding: Numbers | str = 0,
    dilation: Numbers = 1,
    groups: int = 1,
) -> Value:
    """[N, in, H, W], [out, in / groups, kh, kw] -> [N, out, rows, columns]: the sum over each window and the group's
    channels, plus bias[out]. padding: numbers, "valid" (0), or "same" (as many windows as pixels), which needs
    stride 1."""
    return _convolved("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


def _convolved(
    name: str,
    axes: int,
    input: Any,
    weight: Any,
    bias: Any,
    stride: Numbers,
    padding: Numbers | str,
    dilation: Numbers,
    groups: int,
) -> Value:
    x, w = images(name, input, axes), as_value(weight)
    operands = [as_value(input), w]
    kernel = _kernel(name, operands, axes)
    strides, dilations = pair(name, "stride", stride, axes), pair(name, "dilation", dilation, axes)
    attrs = {
        "stride": strides,
        "padding": _padding(name, padding, kernel, strides, dilations, axes),
        "dilation": dilations,
    }
    groups = whole(name, operands[0], "groups", groups)
    if groups > 1 and groups == x.channels == w.shape[0] and w.shape[1] == 1:
        (y,) = applied(name, operands, "depthwise2d", x.value, _windows(w, kernel), **attrs).results
    else:
        filters = _filters(w, kernel)
        (y,) = applied(name, operands, "conv2d", x.value, filters, **attrs, groups=groups).results
    return x.back(_biased(name, operands, y, bias))


def conv_transpose1d(
    input: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: Numbers = 1,
    padding: Numbers = 0,
    output_padding: Numbers = 0,
    groups: int = 1,
    dilation: Numbers = 1,
) -> Value:
    """[N, in, windows], [in, out / groups, k] -> [N, out, L]: conv_transpose2d along one axis."""
    numbers = stride, padding, output_padding, dilation
    return _transposed("conv_transpose1d", 1, input, weight, bias, groups, *numbers)


def conv_transpose2d(
    input: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: Numbers = 1,
    padding: Numbers = 0,
    output_padding: Numbers = 0,
    groups: int = 1,
    dilation: Numbers = 1,
) -> Value:
    """[N, in, rows, columns], [in, out / groups, kh, kw] -> [N, out, H, W], plus bias[out]: the gradient of conv2d with
    respect to its image, with H = (rows - 1) stride - 2 padding + dilation (kh - 1) + output_padding + 1."""
    numbers = stride, padding, output_padding, dilation
    return _transposed("conv_transpose2d", 2, input, weight, bias, groups, *numbers)


def _transposed(
    name: str,
    axes: int,
    input: Any,
    weight: Any,
    bias: Any,
    groups: int,
    stride: Numbers,
    padding: Numbers,
    output_padding: Numbers,
    dilation: Numbers,
) -> Value:
    x, w = images(name, input, axes), as_value(weight)
    operands = [as_value(input), w]
    kernel = _kernel(name, operands, axes)
    strides, dilations = pair(name, "stride", stride, axes), pair(name, "dilation", dilation, axes)
    before = pair(name, "padding", padding, axes, absent=0)
    more = pair(name, "output_padding", output_padding, axes, absent=0)
    if w.shape[0] != x.channels:
        raise shape_error(name, operands, f"the image has {x.channels} channels, the weight {w.shape[0]}")
    if any(k < 0 or k >= max(s, d) for k, s, d in zip(more, strides, dilations, strict=True)):
        raise shape_error(
            name, operands, f"output_padding={output_padding!r} must be less than the stride or the dilation"
        )
    size, sides, beyond = [], [], []
    for count, k, s, d, p, extra in zip(x.size, kernel, strides, dilations, before, more, strict=True):
        # output_padding first reduces the crop after the last window; a rest of a stride or more is added as zeros.
        beyond.append(extra - p if extra - p >= s else 0)
        size.append((count - 1) * s - 2 * p + d * (k - 1) + extra - beyond[-1] + 1)
        sides += [p, max(p - extra, 0)]
    if min(size) < 1:
        raise shape_error(name, operands, f"the result would have the size {size[2 - axes :]}")
    attrs = {
        "size": tuple(size),
        "stride": strides,
        "padding": tuple(sides),
        "dilation": dilations,
        "groups": groups,
    }
    (y,) = applied(name, operands, "conv2d_dx", x.value, _filters(w, kernel), **attrs).results
    y = pad(y, (0, 0, 0, beyond[1], 0, beyond[0])) if any(beyond) else y
    return x.back(_biased(name, operands, y, bias))


def _kernel(name: str, operands: list[Value], axes: int) -> Pair:
    """The window of a weight [out, in / groups, (kh,) kw]."""
    w = operands[1]
    if w.ndim != axes + 2 or not all(isinstance(d, int) for d in w.shape):
        raise shape_error(name, operands, f"the weight must have {axes + 2} axes of fixed size")
    kernel = (1, *w.shape[2:])[-2:]
    assert isinstance(kernel[0], int) and isinstance(kernel[1], int)
    return kernel[0], kernel[1]


def _filters(w: Value, kernel: Pair) -> Value:
    """[o, c, (kh,) kw] -> [o, kh, kw, c], the layout of the op."""
    return apply("permute", reshape(w, (*w.shape[:2], *kernel)), dims=(0, 2, 3, 1))


def _windows(w: Value, kernel: Pair) -> Value:
    """[c, 1, (kh,) kw] -> [kh, kw, c], the layout of the depthwise op."""
    return apply("permute", reshape(w, (w.shape[0], *kernel)), dims=(1, 2, 0))


def _padding(
    name: str, given: Numbers | str, kernel: Pair, stride: Pair, dilation: Pair, axes: int
) -> Padding:
    if not isinstance(given, str):
        return on_both_sides(pair(name, "padding", given, axes, absent=0))
    if given == "valid":
        return 0, 0, 0, 0
    if given != "same":
        raise ShapeError(f'{name}: padding={given!r}; known: numbers, "same", "valid"')
    if stride != (1, 1):
        raise ShapeError(f'{name}: padding="same" needs a stride of 1, not {stride[2 - axes :]}')
    rows, columns = (d * (k - 1) for k, d in zip(kernel, dilation, strict=True))
    return rows // 2, rows - rows // 2, columns // 2, columns - columns // 2


def _biased(name: str, operands: list[Value], y: Value, bias: Any) -> Value:
    if bias is None:
        return y
    b = as_value(bias)
    if b.shape != y.shape[3:]:
        raise shape_error(name, [*operands, b], f"the bias must have shape [{y.shape[3]}]")
    return with_role(y, "xw") + b
