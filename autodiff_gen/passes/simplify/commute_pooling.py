"""Apply a pooling by maximum before the activation that it follows: max(f(x)) = f(max(x)) for every monotone f, and f
is left with a quarter of the work, or less.

    entry f(x: f32[1,4,4,2])
      %0: f32[1,4,4,2] = relu(x)
      %1: f32[1,2,2,2], %2: u8[1,2,2,2] = max_pool2d(%0, kernel=(2, 2), stride=(2, 2), padding=(0, 0, 0, 0),
          dilation=(1, 1), ceil_mode=False)
      y <- %1
    ->
    entry f(x: f32[1,4,4,2])
      %0: f32[1,2,2,2], %1: u8[1,2,2,2] = max_pool2d(x, kernel=(2, 2), stride=(2, 2), padding=(0, 0, 0, 0),
          dilation=(1, 1), ceil_mode=False)
      %2: f32[1,2,2,2] = relu(%0)
      y <- %2
"""

from __future__ import annotations

from ...ir.build import apply, apply_node, with_shape
from ...ir.graph import Graph
from ...ir.names import with_role
from ...ir.node import Node, Value
from ...ir.op_kinds import KernelOp, ViewKind
from ...ir.origin import building
from ...ir.rewrite import rewritten
from ...ir.traits import view_kind
from ..context import Context


def _only_ones_differ(node: Node) -> bool:
    """Whether a node is a reshape that only drops or adds axes of extent 1 before the channels."""
    if view_kind(node) is not ViewKind.RESHAPE:
        return False
    a, b = node.operands[0].type.shape, node.results[0].type.shape
    return a[-1:] == b[-1:] and [d for d in a if d != 1] == [d for d in b if d != 1]


def commute_pooling(graph: Graph, context: Context) -> Graph:
    """See the module."""
    readers, outputs = graph.users, set(graph.roots)

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...] | None:
        passed: list[Node] = []  # from the pooling back
        image = operands[0]
        old, new = node.operands[0], operands[0]
        while len(readers[old]) == 1 and old not in outputs and new.node.op is old.node.op:
            if old.node.op.monotone(old.node.attrs):
                passed.append(new.node)
            elif not _only_ones_differ(old.node):
                break
            old, new = old.node.operands[0], new.node.operands[0]
        if not passed:
            return None
        pooled = apply_node(node.op.name, with_shape(new, image.type.shape), **node.attrs)
        value = with_role(pooled.results[0], "pooled")
        for step in reversed(passed):
            with building(call=step.origin.call):
                value = apply(step.op.name, value, **step.attrs)
        return value, *pooled.results[1:]

    return rewritten(graph, rewrite, filter(_takes_largest, graph.of(KernelOp)))


def _takes_largest(node: Node) -> bool:
    """Whether a node is a pooling by maximum."""
    windows = node.op.windows([v.type.shape for v in node.operands], node.attrs)
    return windows is not None and windows.takes_largest
