"""Copy images: kernels that read windows of an image read a copy of it, where that takes less time by the cost table.

    entry f(x: f32[1,9,9,1], w: f32[32,5,5,1])
      %0: f32[1,9,9,32] = conv2d(x, w, stride=(1, 1), padding=(2, 2, 2, 2), dilation=(1, 1), groups=1)
      y <- %0
    ->
    entry f(x: f32[1,9,9,1], w: f32[32,5,5,1])
      %0: f32[1,13,13,1] = assemble(x, shape=(1, 13, 13, 1), starts=((0, 2, 2, 0),), steps=((1, 1, 1, 1),), fill=0.0)
      %1: f32[1,9,9,5,5,1] = sliding_windows(%0, kernel=(5, 5), stride=(1, 1), dilation=(1, 1))
      %2: f32[1,9,9,5,5,1] = copy(%1)
      %3: f32[1,9,9,25] = reshape(%2, shape=(1, 9, 9, 25))
      %4: f32[32,1,1,25] = reshape(w, shape=(32, 1, 1, 25))
      %5: f32[1,9,9,32] = conv2d(%3, %4, stride=(1, 1), padding=(0, 0, 0, 0), dilation=(1, 1), groups=1)
      y <- %5

Windows of few channels are copied: the copy has a pixel for each window, and the elements of the window as channels.
Without a copy, a kernel reads a row of a window in the image and starts again at the next row. Rows are short in gray
images, for example.

Images are copied with their border where the border cuts windows that kernels of pooled convolutions would compute one
by one. Only inputs are copied so: loops that compute an image would store both copies.

The forward pass and the gradient of the weights each have a copy, which is in memory for that step only. Nothing is
copied where the RAM budget is exceeded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...ir.build import apply, apply_node
from ...ir.graph import Graph
from ...ir.node import Node, Value
from ...ir.op_kinds import KernelOp, RowContraction
from ...ir.origin import Label
from ...ir.rewrite import rewritten
from ...ir.types import planned, planned_size, product
from ...ir.windows import Windows
from ...ops.images.windows import Pair, image_size, output_size
from ..context import Context
from ..costs import image_is_padded, windows_are_copied
from ..profitability import excess

ONE = {
    "kernel": (1, 1),
    "stride": (1, 1),
    "padding": (0, 0, 0, 0),
    "dilation": (1, 1),
}  # a window of one pixel


def copy_images(graph: Graph, context: Context) -> Graph:
    """See the module."""
    found = {
        n: of for n in graph.of(KernelOp, RowContraction) if (of := _worth_a_copy(n, context)) is not None
    }
    if not found or excess(graph, context):
        return graph

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...]:
        of = found[node]
        return _of_windows(node, operands, of) if of.filters else _of_padded(node, operands, of)

    return rewritten(graph, rewrite, found)


def _worth_a_copy(node: Node, context: Context) -> Windows | None:
    """The windows that a node reads, if a copy takes less time than it saves."""
    of = node.op.windows([v.type.shape for v in node.operands], node.attrs)
    if of is None:
        return None
    is_worth = _windows_are_copied if of.filters else _image_is_padded
    return of if is_worth(node, of, context) else None


def _windows_are_copied(node: Node, of: Windows, context: Context) -> bool:
    batch, _, _, channels = planned(node.operands[of.image].type.shape)
    (filters,) = planned((of.filters,))
    columns = of.kernel[1] * channels
    run = columns if node.attrs["dilation"][1] == 1 else channels
    whole = of.kernel[0] * columns
    elements = planned_size((batch, *_count(node, of), whole))
    return windows_are_copied(context.cost, elements, filters, run, whole)


def _image_is_padded(node: Node, of: Windows, context: Context) -> bool:
    """Whether the node reads a copy of an input with its border. Only optimised kernels compute cut windows one by one:
    reference kernels need no copy."""
    image, cut = node.operands[of.image], of.cut
    if cut is None or cut.calls == 0 or image.base.node.operands:
        return False
    if context.backends is None or context.backends.only_ref:
        return False
    return image_is_padded(context.cost, planned_size(image.type.shape[1:]), cut.calls, cut.terms)


def _count(node: Node, of: Windows) -> tuple[int, int]:
    """Rows and columns of windows."""
    stride, padding, dilation = (node.attrs[name] for name in ("stride", "padding", "dilation"))
    return output_size(image_size(node.operands[of.image].type.shape), of.kernel, stride, padding, dilation)


def _of_padded(node: Node, operands: tuple[Value, ...], of: Windows) -> tuple[Value, ...]:
    """The results of the same op on a padded image."""
    new = list(operands)
    new[of.image] = _padded(operands[of.image], of.kernel, _count(node, of), node.attrs)
    return apply_node(node.op.name, *new, **{**node.attrs, "padding": ONE["padding"]}).results


def _of_windows(node: Node, operands: tuple[Value, ...], of: Windows) -> tuple[Value, ...]:
    """The same product of a copy of the windows."""
    new = list(operands)
    new[of.image] = _copied(operands[of.image], node, of)
    pixel = (1, 1, new[of.image].type.shape[-1])
    for k in of.weights:
        new[k] = apply("reshape", operands[k], shape=(operands[k].type.shape[0], *pixel))
    attrs = {name: ONE.get(name, value) for name, value in node.attrs.items()}
    made = apply(node.op.name, *new, **attrs)
    return (apply("reshape", made, shape=node.results[0].type.shape) if of.is_gradient else made,)


def _copied(image: Value, node: Node, of: Windows) -> Value:
    """The windows [n, p, q, elements] of an image."""
    count = _count(node, of)
    stride, dilation = node.attrs["stride"], node.attrs["dilation"]
    image = _padded(image, of.kernel, count, node.attrs)
    windows = apply(
        "copy", apply("sliding_windows", image, kernel=of.kernel, stride=stride, dilation=dilation)
    )
    windows.node.origin.labels[0] = Label("windows")
    return apply("reshape", windows, shape=(image.type.shape[0], *count, product(windows.type.shape[3:])))


def _padded(image: Value, kernel: Pair, count: Pair, attrs: Mapping[str, Any]) -> Value:
    """The image with its padding, as far as `count` rows and columns of windows reach."""
    n, *size, channels = image.type.shape
    top, _, left, _ = attrs["padding"]
    axes = zip(attrs["dilation"], kernel, attrs["stride"], count, strict=True)
    reach = [d * (k - 1) + 1 + s * (o - 1) for d, k, s, o in axes]
    wide = [max(before + d, r) for before, d, r in zip((top, left), size, reach, strict=True)]
    if wide == size:
        return image
    starts = ((0, top, left, 0),)
    padded = apply("assemble", image, shape=(n, *wide, channels), starts=starts, steps=((1,) * 4,), fill=0.0)
    padded.node.origin.labels[0] = Label("padded")
    return padded
