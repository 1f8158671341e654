"""Values of a float graph that share elements, as parts of a concatenation do, have one range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...ir.node import Node, Value
from ...ir.op_kinds import Assemble, Moded, View
from ...ops.quantized.equivalents import Pooling, quantized_equivalent
from .ranges import joined


def is_identity(node: Node) -> bool:
    """Whether the result is operand 0 as it is."""
    return node.op.chooses == (0,) or (isinstance(node.op.lower, Moded) and node.op.lower.updates)


def shared(
    values: Sequence[Value], ranges: Mapping[Value, tuple[float, float]]
) -> dict[Value, tuple[float, float]]:
    """For each of these values, which depend on the input, its range, joined with the ranges of the values with which
    it shares elements."""
    leader = {v: v for v in values}

    def find(v: Value) -> Value:
        while leader[v] is not v:
            v = leader[v]
        return v

    for node in dict.fromkeys(v.node for v in values):
        lower = node.op.lower
        if (
            isinstance(lower, View | Assemble)
            or isinstance(quantized_equivalent(node.op), Pooling)
            or is_identity(node)
        ):
            for v in node.operands:
                if v in leader:
                    leader[find(v)] = find(node.results[0])
    groups: dict[Value, list[tuple[float, float]]] = {}
    for v in values:
        if v in ranges:
            groups.setdefault(find(v), []).append(ranges[v])
    return {v: joined(groups[find(v)]) for v in values if find(v) in groups}
