"""The search for a plan of each entry: within the budget of RAM, by closer budgets for values that are computed again,
and in micro-batches, for the budget or for a cache. Each plan is made by the pipeline.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..ir.graph import Graph
from ..ir.module import IRModule
from ..passes.context import Context
from ..passes.memory.micro_batches import is_divided, parts_of_batch
from .arena.cache_misses import cache_misses
from .pipeline import Dump, before_budget, peak_of, planned, without_cycle_collection
from .plan import EntryPlan

RETRIES = 3  # plans of an entry that exceeds its budget: a limit of compile time
CLOSE = 1.25  # times the budget that such an entry may need: a limit of compile time


def lower(
    graphs: Sequence[Graph], context: Context, dump: Dump | None = None, thorough: bool = True
) -> list[EntryPlan]:
    """The plans, with placed buffers, of complete graphs, which include the updates of states. thorough: whether an
    entry that exceeds the budget by little is planned again."""
    with without_cycle_collection():
        begun = before_budget(graphs, context, dump)
        plans = planned(begun, context, dump)
        if context.budget is None:
            divided = (_fastest(*each, context, dump) for each in zip(plans, graphs, strict=True))
            return [replace(plan, work=None) for plan in divided]
        if thorough:
            begun_plans = zip(plans, begun.entries, strict=True)
            plans = [_smallest(plan, graph, context, dump) for plan, graph in begun_plans]
        over = [graph.name in context.over_budget for graph in graphs]
        return [
            _within_budget(plan, graph, context, dump) if exceeds else plan
            for plan, graph, exceeds in zip(plans, graphs, over, strict=True)
        ]


def _smallest(plan: EntryPlan, graph: Graph, context: Context, dump: Dump | None) -> EntryPlan:
    """The smallest plan of an entry, whose graph the stages before those for a budget have left. Values that are
    computed again for a small budget may leave strips nothing to do: they are chosen for budgets closer and closer to
    the reached bytes, so that strips meet the rest."""
    budget = context.budget
    assert budget is not None
    best, reached = plan, peak_of(plan)
    if budget < 1 or not budget < reached <= CLOSE * budget:
        return plan
    for k in range(1, RETRIES + 1):
        inner = replace(context, slack=(reached - (reached - budget) / 2**k) / budget)
        found = planned(IRModule((graph,)), inner)[0]
        if peak_of(found) < peak_of(best):
            best = found if dump is None else planned(IRModule((graph,)), inner, dump)[0]
        if peak_of(best) <= budget:
            break
    return best


def _fastest(plan: EntryPlan, graph: Graph, context: Context, dump: Dump | None) -> EntryPlan:
    """The fastest plan of an entry: `plan`, or a plan in micro-batches if the arena of `plan` exceeds the cache."""
    cache, best, chosen = context.cost.cache, plan, context
    if cache is None or peak_of(plan) <= cache.bytes:
        return plan

    def time(plan: EntryPlan) -> float:
        assert plan.work is not None
        return plan.work.instructions + cache.miss * cache_misses(plan, cache.bytes)

    for samples in parts_of_batch(graph, context.cost.gemm.tile):
        inner = replace(context, samples=samples)
        begun = before_budget([graph], inner)
        if not is_divided(begun.entries[0]):
            return plan
        found = planned(begun, inner)[0]
        if time(found) < time(best):
            best, chosen = found, inner
    return best if dump is None or chosen is context else _planned_with_dump(graph, chosen, dump)


def _within_budget(plan: EntryPlan, graph: Graph, context: Context, dump: Dump | None) -> EntryPlan:
    """The best plan of an entry whose values exceed the budget unless some are computed again or in strips: `plan`,
    which does so, or a plan in micro-batches. A plan is better if it exceeds the budget by fewer bytes, or by as many
    and takes fewer instructions. Micro-batches are planned without these means; if no plan fits, micro-batches of one
    sample are planned with them too."""
    budget = context.budget
    assert budget is not None

    def rank(plan: EntryPlan) -> tuple[int, float]:
        return max(peak_of(plan) - budget, 0), plan.work.instructions if plan.work is not None else 0.0

    best, chosen = plan, context
    for samples in parts_of_batch(graph, context.cost.gemm.tile):
        # products of a few rows may take more time than products of one row
        for limit in (None, budget) if samples == 1 else (None,):
            if limit is not None and peak_of(best) <= budget:
                break
            inner = replace(context, samples=samples, budget=limit)
            begun = before_budget([graph], inner)
            if not is_divided(begun.entries[0]):
                return replace(plan, mixed=context.mixed.get(graph.name, ""))
            found = planned(begun, inner)[0]
            if rank(found) < rank(best):
                best, chosen = found, inner
    return best if dump is None or chosen is context else _planned_with_dump(graph, chosen, dump)


def _planned_with_dump(graph: Graph, context: Context, dump: Dump) -> EntryPlan:
    return planned(before_budget([graph], context, dump), context, dump)[0]
