"""Pad images: a product of windows of which the border of an image cuts some becomes one of a padded copy of the image.

    entry f(x: f32[1,12,12,1], w: f32[8,3,3,1], b: f32[8])
      %0: f32[1,6,6,8], %1: u8[1,6,6,8] = conv2d_pool(x, w, b, stride=(1, 1), padding=(1, 1, 1, 1), dilation=(1, 1),
          groups=1, pool_kernel=(2, 2), pool_stride=(2, 2), pool_padding=(0, 0, 0, 0), pool_dilation=(1, 1),
          pool_ceil_mode=False)
      y <- %0
    ->
    entry f(x: f32[1,12,12,1], w: f32[8,3,3,1], b: f32[8])
      %0: f32[1,14,14,1] = assemble(x, shape=(1, 14, 14, 1), starts=((0, 1, 1, 0),), steps=((1, 1, 1, 1),), fill=0.0)
      %1: f32[1,6,6,8], %2: u8[1,6,6,8] = conv2d_pool(%0, w, b, stride=(1, 1), padding=(0, 0, 0, 0), dilation=(1, 1),
          groups=1, pool_kernel=(2, 2), pool_stride=(2, 2), pool_padding=(0, 0, 0, 0), pool_dilation=(1, 1),
          pool_ceil_mode=False)
      y <- %1

Kernels of pooled convolutions compute the windows that the border cuts one by one; where that takes longer than the
copy, by the cost table, the image is padded. The forward pass and the gradient of the weights each have a copy, which
is in memory for that step alone; so only inputs are padded, as loops that compute an image would store both copies.
Nothing is padded where the RAM budget is exceeded, nor for reference kernels.
"""

from __future__ import annotations

from ...ir.build import apply_node
from ...ir.graph import Graph
from ...ir.node import Node, Value
from ...ir.op_kinds import Call, CutWindows
from ...ir.rewrite import rewritten
from ...ir.types import planned_size
from ...ops.images.windows import output_size, pair_of
from ..context import Context
from ..costs import image_is_padded
from ..worth import excess
from .copy_windows import padded_image


def pad_images(graph: Graph, context: Context) -> Graph:
    """See the module."""
    if context.backends is None or context.backends.only_ref:
        return graph
    found = {n: cut for n in graph.of(Call) if (cut := _worth_a_copy(n, context)) is not None}
    if not found or excess(graph, context):
        return graph

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...]:
        return _of_padded(node, operands, found[node])

    return rewritten(graph, rewrite, found)


def _worth_a_copy(node: Node, context: Context) -> CutWindows | None:
    """The windows that are cut, if they take longer than a copy."""
    lower = node.op.lower
    assert isinstance(lower, Call)
    cut = lower.cut([v.type.shape for v in node.operands], node.attrs)
    if cut is None or cut.calls == 0 or node.operands[cut.image].base.node.operands:
        return None
    elements = planned_size(node.operands[cut.image].type.shape[1:])
    return cut if image_is_padded(context.cost, elements, cut.calls, cut.terms) else None


def _of_padded(node: Node, operands: tuple[Value, ...], cut: CutWindows) -> tuple[Value, ...]:
    """The results of the same op on a padded image."""
    image, attrs = operands[cut.image], node.attrs
    count = output_size(
        pair_of(image.type.shape), cut.kernel, attrs["stride"], attrs["padding"], attrs["dilation"]
    )
    new = list(operands)
    new[cut.image] = padded_image(image, cut.kernel, count, attrs)
    return apply_node(node.op.name, *new, **{**attrs, "padding": (0, 0, 0, 0)}).results
