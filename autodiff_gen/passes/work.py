"""About how many instructions nodes take, before they become loops and calls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..ir.node import Node
from ..ir.op_kinds import Call, Contraction, Elementwise, Leaf, Reduce, RowContraction, View
from ..ir.traits import macs
from ..ir.types import planned_size
from ..targets.cost_table import CostTable

FUNCTION = 40  # operations in exp, tanh, ... of ag_math.h, on every core


@dataclass(frozen=True)
class Work:
    """Of an entry: multiply-accumulates of its products, and about how many instructions it takes."""

    macs: int
    instructions: float


def work_of(nodes: Sequence[Node], cost: CostTable) -> Work:
    """Of all of them."""
    return Work(sum(map(_macs, nodes)), work(nodes, cost))


def work(nodes: Iterable[Node], cost: CostTable) -> float:
    """Of all of them."""
    return sum(_work(n, cost) for n in nodes)


def _work(node: Node, cost: CostTable) -> float:
    """About how many instructions a node takes."""
    lower = node.op.lower
    if isinstance(lower, View | Leaf):
        return 0
    if node.regions:
        inside = max(work(region.nodes, cost) for region in node.regions)
        return inside * int(node.attrs.get("length", 1))
    size = sum(planned_size(r.type.shape) for r in node.results)
    element = cost.load + cost.arithmetic + cost.store
    if isinstance(lower, Elementwise):
        return size * (element + FUNCTION * cost.arithmetic if lower.calls else element)
    if isinstance(lower, Reduce):
        return planned_size(node.operands[0].type.shape) * element
    if isinstance(lower, Call | Contraction | RowContraction):
        return max(size, _macs(node)) * cost.gemm.term
    return size * element


def _macs(node: Node) -> int:
    """Multiply-accumulates of products, those of loops included."""
    lower = node.op.lower
    if node.regions:
        return max(sum(map(_macs, region.nodes)) for region in node.regions) * int(
            node.attrs.get("length", 1)
        )
    if isinstance(lower, Call):
        return macs(node)
    if isinstance(lower, Contraction | RowContraction):
        depth = planned_size(node.operands[0].type.shape[-1:])
        return depth * sum(planned_size(r.type.shape) for r in node.results)
    return 0
