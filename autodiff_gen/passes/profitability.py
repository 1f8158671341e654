"""Whether a graph is worth its time: the arena and the time that it takes are weighed against another graph that
computes the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from ..ir.graph import Graph
from ..ir.node import Node, Value, base
from ..ir.op_kinds import Leaf
from .arena_use import liveness
from .context import Context
from .work_estimate import work


def excess(graph: Graph, context: Context) -> int:
    """By how many bytes the steps of an entry exceed the budget, all added up; 0 if it fits."""
    if context.budget is None or surely_fits(graph, context):
        return 0
    return liveness(graph, context).excess(context.budget)


def surely_fits(graph: Graph, context: Context) -> bool:
    """Whether a graph meets the budget even if every value is stored, and the steps have the order of the nodes."""
    assert context.budget is not None
    most = context.analysis((surely_fits, graph), lambda: _peak_in_order(graph.nodes, graph.outside_arena))
    return most <= context.budget


def _peak_in_order(nodes: Sequence[Node], outside: Collection[Value]) -> int:
    """The most bytes that are alive at once if every value and a copy of every view are stored, and copies of the
    operands while a node is computed."""
    last = {u: k for k, n in enumerate(nodes) for v in n.operands for u in (v, v.base)}
    dying: dict[int, int] = {}
    live = peak = 0
    for k, n in enumerate(nodes):
        if not isinstance(base(n.results[0]).node.op.lower, Leaf):
            for r in n.results:
                size = 0 if r in outside else r.type.bytes
                live += size
                dying[last.get(r, k)] = dying.get(last.get(r, k), 0) + size
        inside = max((_peak_in_order(region.nodes, ()) for region in n.regions), default=0)
        peak = max(peak, live + inside + sum(v.type.bytes for v in n.operands))
        live -= dying.pop(k, 0)
    return peak


def is_worth_its_time(new: Graph, old: Graph, context: Context) -> bool:
    """Whether `new` takes so much less of the arena than `old` that it may take more time. The cost table decides, but
    any saving counts where `old` exceeds the budget. True until the target is known."""
    if context.backends is None:
        return True
    over = excess(old, context)
    if not (over or context.cost.memory):
        return False
    if over:
        found, before = liveness(new, context), liveness(old, context).peak
        is_smaller = found.least_height[0] <= before and (found.peak, excess(new, context)) < (before, over)
        context.over_budget |= {new.name} if is_smaller else set()
        return is_smaller
    takes = work(old.nodes, context.cost)
    more, most = max(work(new.nodes, context.cost) - takes, 0.0) / takes, context.cost.memory
    return _is_lower(
        new, old, context, lambda peak, before: peak < before and more <= most * (before - peak) / before
    )


def takes_no_more(new: Graph, old: Graph, context: Context) -> bool:
    """Whether `new` takes at most as much of the arena as `old`, and no more than the budget; false until the target is
    known."""
    if context.backends is None:
        return False
    return _is_lower(new, old, context, lambda peak, before: peak <= before) and not excess(new, context)


def _is_lower(new: Graph, old: Graph, context: Context, test: Callable[[int, int], bool]) -> bool:
    """Whether the peaks of two graphs meet a test. The test must also hold for a lower peak of the new graph and for a
    higher peak of the old one. An order of steps is searched only where the least possible peaks do not decide."""
    found, before = liveness(new, context), liveness(old, context)
    least = before.least_height[0]
    if test(found.least_height[0], least) and test(found.peak, least):
        return True
    return test(found.least_height[0], before.peak) and test(found.peak, before.peak)
