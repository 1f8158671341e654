"""Fuse a convolution with the pooling by maximum that alone reads it, and likewise their gradients: the image between
them, the largest of a small net, is never stored, and zeros that the pooling's gradient would hold are never
multiplied.

    entry f(x: f32[1,6,6,1], w: f32[4,3,3,1])
      %0: f32[1,4,4,4] = conv2d(x, w, stride=(1, 1), padding=(0, 0, 0, 0), dilation=(1, 1), groups=1)
      %1: f32[1,2,2,4], %2: u8[1,2,2,4] = max_pool2d(%0, kernel=(2, 2), stride=(2, 2), padding=(0, 0, 0, 0),
          dilation=(1, 1), ceil_mode=False)
      y <- %1
    ->
    entry f(x: f32[1,6,6,1], w: f32[4,3,3,1])
      %0: f32[4] = broadcast_to(0.0, shape=(4,))
      %1: f32[1,2,2,4], %2: u8[1,2,2,4] = conv2d_pool(x, w, %0, stride=(1, 1), padding=(0, 0, 0, 0), dilation=(1, 1),
          groups=1, pool_kernel=(2, 2), pool_stride=(2, 2), pool_padding=(0, 0, 0, 0), pool_dilation=(1, 1),
          pool_ceil_mode=False)
      y <- %1
"""

from __future__ import annotations

from typing import Any

from ..ir.build import apply, apply_node, constant
from ..ir.graph import Graph
from ..ir.node import Node, Value
from ..ir.rewrite import rewritten
from ..ir.types import normalise_axes
from .context import Context


def _simple(pool: Node) -> bool:
    """Whether the windows of a pooling neither overlap nor reach into padding."""
    attrs = pool.attrs
    apart = all(s >= k for s, k in zip(attrs["stride"], attrs["kernel"], strict=True))
    return apart and attrs["dilation"] == (1, 1) and not any(attrs["padding"])


def _joined(conv: Node, pool: Node) -> dict[str, Any]:
    shared = {k: conv.attrs[k] for k in ("stride", "padding", "dilation", "groups")}
    return shared | {f"pool_{k}": v for k, v in pool.attrs.items() if k != "size"}


def _with_bias(v: Value) -> list[tuple[Value, Value | None]]:
    """What v may be read as: itself, or an image plus a bias for each channel."""
    found: list[tuple[Value, Value | None]] = [(v, None)]
    if v.node.op.name == "add":
        a, b = v.node.operands
        for image, bias in ((a, b), (b, a)):
            by_channel = (
                all(d == 1 for d in bias.type.shape[:-1]) and bias.type.shape[-1:] == v.type.shape[-1:]
            )
            if image.type.shape == v.type.shape and by_channel:
                found.append((image, bias))
    return found


def _axes(node: Node) -> tuple[int, ...]:
    return normalise_axes(node.attrs["axes"], node.operands[0].ndim)


def fuse_conv_pool(graph: Graph, context: Context) -> Graph:
    """See the module."""
    readers = graph.users
    roots = set(graph.roots)

    def only_read_by(v: Value, *names: str) -> bool:
        found = readers.get(v, [])
        return v not in roots and bool(found) and all(n.op.name in names for n in found)

    def once(v: Value) -> bool:
        return v not in roots and len(readers[v]) == 1

    def forward(node: Node) -> bool:
        """Whether a pooling reads a convolution of one group, or that plus a bias for each channel, alone."""
        if node.op.name != "max_pool2d" or not _simple(node) or not once(node.operands[0]):
            return False
        convs = [v for v, _ in _with_bias(node.operands[0]) if v.node.op.name == "conv2d"]
        return bool(convs) and convs[0].node.attrs["groups"] == 1 and once(convs[0])

    def spread(v: Value) -> bool:
        """Whether v is what goes back through a pooling, into gradients of convolutions of one group alone."""
        node = v.node
        return (
            node.op.name == "max_pool2d_dx"
            and _simple(node)
            and only_read_by(v, "conv2d_dx", "conv2d_dw", "sum")
            and all(n.attrs.get("groups", 1) == 1 for n in readers[v])
            and all(n.op.name != "sum" or {1, 2} <= set(_axes(n)) for n in readers[v])
            and not any(n.op.name == "conv2d_dx" and n.operands[1] is v for n in readers[v])
            and not any(n.op.name == "conv2d_dw" and n.operands[0] is v for n in readers[v])
        )

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...] | None:
        if forward(node):
            conv, bias = next((v, b) for v, b in _with_bias(operands[0]) if v.node.op.name == "conv2d")
            if bias is None:
                bias = apply("broadcast_to", constant(0.0, conv.type.dtype), shape=conv.type.shape[-1:])
            else:
                bias = apply("reshape", bias, shape=conv.type.shape[-1:])
            made = apply_node("conv2d_pool", *conv.node.operands, bias, **_joined(conv.node, node))
            return made.results
        if node.op.name == "conv2d_dx" and spread(node.operands[0]):
            (dy, index), w = operands[0].node.operands, operands[1]
            result = apply(
                "conv2d_pool_dx", dy, index, w, size=node.attrs["size"], **_joined(node, operands[0].node)
            )
        elif node.op.name == "conv2d_dw" and spread(node.operands[1]):
            x, (dy, index) = operands[0], operands[1].node.operands
            result = apply(
                "conv2d_pool_dw", x, dy, index, kernel=node.attrs["kernel"], **_joined(node, operands[1].node)
            )
        elif node.op.name == "sum" and spread(node.operands[0]):
            result = apply(
                "sum", operands[0].node.operands[0], **node.attrs
            )  # each element goes to one place
        else:
            return None
        return (result,)

    return rewritten(graph, rewrite)
