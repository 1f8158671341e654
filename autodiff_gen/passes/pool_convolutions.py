"""A convolution that only a pooling by maximum reads becomes one op with it, and so do their gradients: the image
between them, the largest of a small net, is never stored, and zeros that the pooling would spread are never
multiplied.
"""

from __future__ import annotations

from typing import Any

from ..ir import Graph, Node, Value, apply, apply_node, substitute, topological, users


def _simple(pool: Node) -> bool:
    """Whether the windows of a pooling neither overlap nor reach into padding."""
    attrs = pool.attrs
    apart = all(s >= k for s, k in zip(attrs["stride"], attrs["kernel"], strict=True))
    return apart and attrs["dilation"] == (1, 1) and not any(attrs["padding"])


def _joined(conv: Node, pool: Node) -> dict[str, Any]:
    shared = {k: conv.attrs[k] for k in ("stride", "padding", "dilation", "groups")}
    return shared | {f"pool_{k}": v for k, v in pool.attrs.items() if k != "size"}


def pool_convolutions(graph: Graph) -> Graph:
    """See the module."""
    readers = users(topological(graph.roots))
    roots = set(graph.roots)

    def only_read_by(v: Value, *names: str) -> bool:
        found = readers.get(v, [])
        return v not in roots and bool(found) and all(n.op.name in names for n in found)

    def forward(node: Node) -> bool:
        if node.op.name != "max_pool2d" or not _simple(node):
            return False
        conv = node.operands[0]
        joins = conv.node.op.name == "conv2d" and conv.node.attrs["groups"] == 1
        return joins and len(readers[conv]) == 1 and conv not in roots

    def spread(v: Value) -> bool:
        """Whether v is what goes back through a pooling, into gradients of convolutions of one group alone."""
        node = v.node
        return (
            node.op.name == "max_pool2d_dx"
            and _simple(node)
            and only_read_by(v, "conv2d_dx", "conv2d_dw")
            and all(n.attrs["groups"] == 1 for n in readers[v])
            and not any(n.op.name == "conv2d_dx" and n.operands[1] is v for n in readers[v])
            and not any(n.op.name == "conv2d_dw" and n.operands[0] is v for n in readers[v])
        )

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...] | None:
        if forward(node):
            conv = operands[0].node
            made = apply_node("conv2d_pool", *conv.operands, **_joined(conv, node))
            made.hint = node.hint
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
        else:
            return None
        result.node.hint = node.hint
        return (result,)

    return graph.with_roots(substitute(graph.roots, rewrite))
