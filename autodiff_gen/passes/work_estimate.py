"""About how many instructions nodes take, before they become loops and calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ..ir.batch_axis import times_of
from ..ir.node import Node
from ..ir.op_kinds import Contraction, Elementwise, KernelOp, Leaf, Reduce, RowContraction, View
from ..ir.traits import macs
from ..ir.types import planned, planned_size
from ..targets.cost_table import CostTable

FUNCTION = 40  # operations in exp, tanh, ... of ag_math.h, on every core


@dataclass(frozen=True)
class Work:
    """The multiply-accumulates of an entry's products, and about how many instructions the entry takes."""

    macs: int
    instructions: float


def work_of(nodes: Sequence[Node], cost: CostTable) -> Work:
    """The work of all nodes; products are counted as kernels compute them, in tiles."""
    return Work(sum(map(_macs, nodes)), sum(_work(n, cost, _in_tiles) for n in nodes))


def work(nodes: Iterable[Node], cost: CostTable) -> float:
    """About how many instructions all nodes take; products are counted by their multiply-accumulates only."""
    return sum(_work(n, cost, _by_terms) for n in nodes)


def _work(node: Node, cost: CostTable, product: Callable[[Node, CostTable], float]) -> float:
    """About how many instructions a node takes."""
    lower = node.op.lower
    if isinstance(lower, View | Leaf):
        return 0
    if node.regions:
        inside = max(sum(_work(n, cost, product) for n in region.nodes) for region in node.regions)
        return inside * _times(node)
    size = sum(planned_size(r.type.shape) for r in node.results)
    element = cost.load + cost.arithmetic + cost.store
    if isinstance(lower, Elementwise):
        return size * (element + FUNCTION * cost.arithmetic if lower.calls else element)
    if isinstance(lower, Reduce):
        return planned_size(node.operands[0].type.shape) * element
    if isinstance(lower, Contraction):
        return product(node, cost)
    if isinstance(lower, KernelOp | RowContraction):
        return _by_terms(node, cost)
    return size * element


def _by_terms(node: Node, cost: CostTable) -> float:
    """About how many instructions a product or another kernel call takes, from its multiply-accumulates."""
    size = sum(planned_size(r.type.shape) for r in node.results)
    return max(size, _macs(node)) * cost.gemm.term


def _in_tiles(node: Node, cost: CostTable) -> float:
    """About how many instructions a product takes as kernels compute it: tile by tile, one matrix of a batch after the
    other."""
    *outer, rows, columns = planned(node.results[0].type.shape)
    (terms,) = planned(node.operands[0].type.shape[-1:])
    if terms == 1:
        return math.prod(outer) * cost.axpby.total((rows * columns,), terms)
    packing, load = (0.0, 0.0) if cost.cache is None else (cost.cache.packing, cost.cache.load)
    if 1 in (rows, columns):
        return math.prod(outer) * (cost.gemv.total((rows * columns,), terms) + load * terms * rows * columns)
    return math.prod(outer) * (cost.gemm.total((rows, columns), terms) + packing * terms * columns)


def _times(node: Node) -> int:
    """How often the regions of a node are run."""
    return times_of(node.attrs.get("length", 1), node.attrs.get("samples", 0))


def _macs(node: Node) -> int:
    """Multiply-accumulates of products, products in loops included."""
    lower = node.op.lower
    if node.regions:
        return max(sum(map(_macs, region.nodes)) for region in node.regions) * _times(node)
    if isinstance(lower, KernelOp):
        return macs(node)
    if isinstance(lower, Contraction | RowContraction):
        depth = planned_size(node.operands[0].type.shape[-1:])
        return depth * sum(planned_size(r.type.shape) for r in node.results)
    return 0
