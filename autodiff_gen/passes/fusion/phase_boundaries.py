"""Groups that stay apart, so that a step of the generated code belongs to one phase of training: forward, loss,
backward, or the update of one parameter.

Two groups that could share their loops are kept apart unless that costs too much: a value that one group computes and
the other reads is then stored and loaded. A graph spends a small share of its work on such values. Steps of large
networks are therefore apart, and small networks keep the fastest loops.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from ...ir.graph import Graph
from ...ir.node import Node, Value, base
from ...ir.op_kinds import Cond, Contraction, KernelOp, Scan
from ...ir.origin import BACKWARD, UPDATE, is_after_loss
from ...ir.types import Shape, planned_size
from ...targets.cost_table import CostTable
from ..work_estimate import work

SHARE = 0.004  # of a graph's work, for values that are stored to keep phases apart
LARGEST = 1 / 3  # of this budget, for a single value: a large value must leave some for the others
SMALL = 1 / 1000  # of this budget is always spent, such as on a scalar


def phase_of(node: Node) -> tuple[str, str]:
    """The phase, and the parameter for an update. A node of the backward pass that computes the gradient of a parameter
    belongs to the update."""
    origin = node.origin
    if origin.phase == UPDATE:
        return UPDATE, origin.scope
    for label in origin.labels.values() if origin.phase == BACKWARD else ():
        state = None if label.gradient_of is None else base(label.gradient_of).node.attrs.get("state")
        if state is not None:
            return UPDATE, state.name
    return origin.phase, ""


@dataclass(eq=False)
class Group:
    """Nodes that become one loop nest, with the parts and the modules that they belong to. shape: the shape of all
    arrays that they compute, where these surely share loops; None where they may not. recomputed: whether a node is a
    recomputation; early: whether a node belongs to the forward pass; strips: the strips that the nodes belong to, None
    for nodes that compute a whole value."""

    nodes: list[Node]
    parts: set[tuple[str, str]]
    modules: set[str]
    shape: Shape | None
    recomputed: bool
    early: bool
    strips: set[tuple[int, int] | None]

    def add(self, other: Group, shape: Shape | None) -> None:
        """Make the nodes of another group part of this one; `shape` is then the shape of both."""
        self.nodes += other.nodes
        self.parts |= other.parts
        self.modules |= other.modules
        self.shape = shape
        self.recomputed |= other.recomputed
        self.early |= other.early
        self.strips |= other.strips


class PhaseBudget:
    """The parts that the nodes of a graph belong to, and how much may still be spent on keeping them apart."""

    def __init__(self, graph: Graph, cost: CostTable) -> None:
        self.cost = cost
        self.left = self.budget = SHARE * work(graph.nodes, cost)
        self.readers: dict[Value, list[Node]] = {}
        self.stored = set(graph.outside_arena)
        self.parts = {n: phase_of(n) for n in graph.nodes}
        for n in graph.nodes:
            sources = [v.base for v in n.operands]
            for v in sources:
                self.readers.setdefault(v, []).append(n)
            if isinstance(n.op.lower, (Contraction, KernelOp, Scan, Cond)):
                self.stored.update(sources)
            if (
                self.parts[n][0] == BACKWARD
            ):  # a gradient of a parameter that the backward pass needs is part of it
                self.parts.update({v.node: self.parts[n] for v in sources if v.node.origin.phase == BACKWARD})

    def group(self, node: Node, shape: Shape | None) -> Group:
        """A group of one node."""
        origin = node.origin
        own = {self.parts[node]}, {origin.scope}, shape
        return Group([node], *own, origin.recomputed, not is_after_loss(origin), {origin.strip})

    def apart(self, first: Group, second: Group) -> bool:
        """Whether two groups stay apart, where the second reads the first. The budget then pays the cost."""
        a, b = first.parts, second.parts
        of_different_modules = first.modules.isdisjoint(second.modules)
        if a == b and not of_different_modules:
            return False
        crossing = _crossing(first, second)
        if (a <= b or b <= a) and not (of_different_modules and _are_numbers(crossing)):
            return False
        load, store = self.cost.load + self.cost.loop, self.cost.store + self.cost.loop
        cost = sum(planned_size(v.type.shape) * (load + (v not in self.stored) * store) for v in crossing)
        if crossing <= self.stored:
            cost -= sum(planned_size(v.type.shape) * (load + store) for v in self._kept(second.nodes))
        if cost > SMALL * self.budget and cost > min(self.left, LARGEST * self.budget):
            return False
        self.left -= max(cost, 0)
        self.stored |= crossing
        return True

    def apart_but_for_numbers(self, first: Group, second: Group) -> bool:
        """Like `apart`, for a second group that reads only numbers of the first and comes from other modules."""
        if not first.modules.isdisjoint(second.modules):
            return False
        return _are_numbers(_crossing(first, second)) and self.apart(first, second)

    def _kept(self, group: Collection[Node]) -> list[Value]:
        """Values of a group that need not be stored if the group stays apart: only nodes of the same part read them,
        and these can join the group."""
        inside = set(group)
        found = []
        for n in group:
            for r in n.results:
                others = [m for m in self.readers.get(r, ()) if m not in inside]
                if others and r not in self.stored and all(self.parts[m] == self.parts[n] for m in others):
                    found.append(r)
        return found


def _crossing(first: Group, second: Group) -> set[Value]:
    """The values of the first group that the second group reads."""
    inside = set(first.nodes)
    return {v.base for n in second.nodes for v in n.operands if v.base.node in inside}


def _are_numbers(values: Iterable[Value]) -> bool:
    return all(planned_size(v.type.shape) == 1 for v in values)
