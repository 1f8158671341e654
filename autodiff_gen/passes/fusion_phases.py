"""Which groups stay apart, so that a step of the generated code belongs to one phase of training: forward, loss,
backward, or the update of one parameter.

Two groups that could share their loops are kept apart unless that costs too much: a value that one computes and the
other reads is then stored and loaded. A graph spends a small share of its work on such values, so that steps of large
networks are apart, and small networks keep the fastest loops.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ..ir.graph import Graph
from ..ir.node import Node, Value, base
from ..ir.op_kinds import Contraction, Elementwise, Leaf, Reduce, View
from ..ir.origin import BACKWARD, UPDATE
from ..ir.types import planned_size

SHARE = 0.002  # of a graph's work, for values that are stored to keep phases apart

# Instructions for an element, a multiply-accumulate, or a call of exp, tanh, ...
ARITHMETIC, PRODUCT, FUNCTION, TRANSFER = 3, 1, 40, 3


def part_of(node: Node) -> tuple[str, str]:
    """The phase, and of updates the parameter. Where the gradient of a parameter is computed by itself, it belongs to
    the update."""
    origin = node.origin
    if origin.phase == UPDATE:
        return UPDATE, origin.scope
    for label in origin.labels.values() if origin.phase == BACKWARD else ():
        state = None if label.gradient_of is None else base(label.gradient_of).node.attrs.get("state")
        if state is not None:
            return UPDATE, state.name
    return origin.phase, ""


class Phases:
    """The parts that the nodes of a graph belong to, and how much may still be spent on keeping them apart."""

    def __init__(self, graph: Graph) -> None:
        self.left = SHARE * sum(map(_work, graph.nodes))
        self.stored = {base(v) for v in graph.roots}

    def apart(self, first: Collection[Node], second: Collection[Node]) -> bool:
        """Whether two groups, of which the second reads the first, stay apart; it is then paid for."""
        a, b = {part_of(n) for n in first}, {part_of(n) for n in second}
        if a <= b or b <= a:
            return False
        crossing = self._crossing(first, second)
        cost = sum(TRANSFER * (1 + (v not in self.stored)) * planned_size(v.type.shape) for v in crossing)
        if cost > self.left:
            return False
        self.left -= cost
        self.stored.update(crossing)
        return True

    def _crossing(self, first: Collection[Node], second: Iterable[Node]) -> Sequence[Value]:
        """What the second group reads of the first."""
        inside = set(first)
        read = dict.fromkeys(base(v) for n in second for v in n.operands)
        return [v for v in read if v.node in inside]


def _work(node: Node) -> int:
    """About how many instructions a node takes."""
    lower = node.op.lower
    if isinstance(lower, View | Leaf):
        return 0
    size = sum(planned_size(r.type.shape) for r in node.results)
    if isinstance(lower, Elementwise):
        return size * (FUNCTION if lower.calls else ARITHMETIC)
    if isinstance(lower, Reduce):
        return planned_size(node.operands[0].type.shape) * ARITHMETIC
    if isinstance(lower, Contraction):
        depth = node.operands[0].type.shape[-1:]
        return size * planned_size(depth) * PRODUCT
    return size * ARITHMETIC
