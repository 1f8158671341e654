"""The partition of a graph into parts that become one step each, and the values that are stored between the parts. A
part is a group of nodes that share loops, or a single node that a kernel or a region computes. The groups come from
groups.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...ir.graph import Graph
from ...ir.node import Node, Value
from ...ir.traits import is_fusable
from ...targets.cost_table import CostTable
from .groups import Groups, grouped
from .store_between_passes import stored_between_passes


@dataclass(frozen=True)
class StepNodes:
    """nodes: the nodes that one step computes, operands first; stored: the results that are stored; is_loop: whether
    loops compute them."""

    nodes: Sequence[Node]
    stored: Sequence[Value]
    is_loop: bool


def partition(graph: Graph, cost: CostTable) -> list[StepNodes]:
    """The parts in an order in which each comes after its operands."""
    groups = grouped(graph, cost)
    needed = groups.needed(graph)
    needed |= stored_between_passes(graph, groups, needed)
    found = []
    for g in _condensed_order(groups):
        nodes = sorted(groups.groups[g].nodes, key=groups.position.__getitem__)
        if not is_fusable(nodes[0]):
            found += [StepNodes(nodes, nodes[0].results, False)] if nodes[0].operands else []
        elif any(
            r in needed for n in nodes for r in n.results
        ):  # else all of it is computed where it is read
            own = [n for n in nodes if groups.group[n] == g]
            found.append(StepNodes(nodes, [r for n in own for r in n.results if r in needed], True))
    return found


def _condensed_order(groups: Groups) -> list[int]:
    order: list[int] = []
    state: dict[int, int] = {}
    for root in sorted(groups.groups):
        stack = [root]
        while stack:
            g = stack[-1]
            if state.get(g):
                stack.pop()
                if state[g] == 1:
                    state[g] = 2
                    order.append(g)
                continue
            state[g] = 1
            above = {groups.group[b] for n in groups.groups[g].nodes for b in groups.before(n)} - {g}
            stack.extend(h for h in sorted(above, reverse=True) if h not in state)
    return order
