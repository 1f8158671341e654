"""A pooling by maximum moves ahead of the bias and the activation that it follows: max(relu(x + b)) = relu(max(x) + b)
for every function that does not fall, and a quarter of the work, or less, is left for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..dtypes import Shape
from ..ir import Node, Value, apply, apply_node, substitute, topological, users


def _image_operand(node: Node) -> int | None:
    """Which operand of a node that does not fall along it is the image; None for other nodes."""
    name = node.op.name
    if name in ("relu", "hardtanh") or (name == "leaky_relu" and node.attrs["negative_slope"] >= 0):
        return 0
    if name == "add":
        shape = node.results[0].type.shape
        for k, other in ((0, node.operands[1]), (1, node.operands[0])):
            by_channel = all(d == 1 for d in other.type.shape[:-1])
            if node.operands[k].type.shape == shape and by_channel:
                return k
    return None


def _only_ones_differ(node: Node) -> bool:
    """Whether a node is a reshape that only drops or adds axes of extent 1 before the channels."""
    if node.op.name != "reshape":
        return False
    a, b = node.operands[0].type.shape, node.results[0].type.shape
    return a[-1:] == b[-1:] and [d for d in a if d != 1] == [d for d in b if d != 1]


def _in_shape(v: Value, shape: Shape) -> Value:
    return v if v.type.shape == shape else apply("reshape", v, shape=shape)


def early_pooling(roots: Sequence[Value]) -> list[Value]:
    """See the module."""
    readers = users(topological(roots))
    asked = set(roots)

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...] | None:
        if node.op.name != "max_pool2d":
            return None
        passed: list[tuple[Node, int]] = []  # from the pooling back
        image = operands[0]
        old, new = node.operands[0], operands[0]
        while len(readers[old]) == 1 and old not in asked and new.node.op is old.node.op:
            if (k := _image_operand(old.node)) is not None:
                passed.append((new.node, k))
            elif _only_ones_differ(old.node):
                k = 0
            else:
                break
            old, new = old.node.operands[k], new.node.operands[k]
        if not passed:
            return None
        pooled = apply_node("max_pool2d", _in_shape(new, image.type.shape), **node.attrs)
        value = pooled.results[0]
        for step, k in reversed(passed):
            given = [value if i == k else v for i, v in enumerate(step.operands)]
            value = apply(step.op.name, *given, **step.attrs)
        return value, pooled.results[1]

    return substitute(roots, rewrite)
