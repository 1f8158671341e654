"""Rematerialise products, also known as checkpointing of activations: where the arena exceeds the RAM budget, the
backward pass recomputes values of the forward pass, including results of products.

    entry f(x: f32[1,4], w: f32[4,16], u: f32[16,4], dy: f32[1,4])
      %0: f32[1,16] = matmul(x, w)
      %1: f32[1,16] = tanh(%0)
      %2: f32[1,4] = matmul(%1, u)
      %3: f32[16,1] = permute(%1, dims=(1, 0))
      %4: f32[16,4] = matmul(%3, dy)
      y <- %2
      du <- %4
    ->
    entry f(x: f32[1,4], w: f32[4,16], u: f32[16,4], dy: f32[1,4])
      %0: f32[1,16] = matmul(x, w)
      %1: f32[1,16] = tanh(%0)
      %2: f32[1,4] = matmul(%1, u)
      %3: f32[1,16] = matmul(x, w)
      %4: f32[1,16] = tanh(%3)
      %5: f32[16,1] = permute(%4, dims=(1, 0))
      %6: f32[16,4] = matmul(%5, dy)
      y <- %2
      du <- %6

The candidates are values that are alive at the step that needs most memory, but that this step does not read. The pass
chooses the candidates that take least time for their bytes; nodes after the step then read copies. A copy is computed
from values that are still alive where it is read first, from smaller values, such as statistics, and from copies of the
others. Where a copy is alive at the next peak, the nodes after that peak read another copy.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...ir.graph import Graph
from ...ir.node import Value
from ..arena_use import liveness
from ..context import Context
from ..profitability import excess, surely_fits
from ..work_estimate import work
from .recomputation import Recomputation

MOST_TRIED = 120  # graphs: a limit of compile time
MOST_ALONE = 8  # values that are tried one by one: a limit of compile time
LEAST_SHARE = 50  # a value is tried if it has at least 1/50 of the missing bytes: a limit of compile time


def rematerialize_products(graph: Graph, context: Context) -> Graph:
    """See the module."""
    if context.budget is not None:
        context = replace(context, budget=round(context.slack * context.budget))
    if graph.inner or context.budget is None or surely_fits(graph, context):
        return graph
    tried, budget, best = set[Graph](), context.budget, graph
    while len(tried) < MOST_TRIED:
        if not excess(graph, context):
            gaps = liveness(graph, context).placed(context.cost.alignment) - budget
            if gaps <= 0:
                return graph
            context = replace(context, budget=context.budget - gaps)  # between buffers
            continue
        context.over_budget.add(graph.name)
        better = _improved(graph, context, tried)
        if better is None:
            break
        graph = better
        if liveness(graph, context).peak < liveness(best, context).peak:
            best = graph  # not if only fewer steps reach the peak
    return best


def _improved(graph: Graph, context: Context, tried: set[Graph]) -> Graph | None:
    """The graph with copies of values that are alive at the peak. The peak is then lower, or fewer steps reach it. The
    first choice of copies that meets the budget is taken. If none does, the choices that save at least half as much as
    the best choice are compared, and the one with the least time for each saved byte is taken."""
    assert context.budget is not None
    use, before = liveness(graph, context), work(graph.nodes, context.cost)
    found = context.analysis((Recomputation, graph), lambda: Recomputation(use))
    missing, now = use.peak - context.budget, use.height
    candidates = [v for v in found.idle if v.type.bytes * LEAST_SHARE >= min(missing, use.peak)]
    candidates.sort(key=lambda v: work(found.nodes(v), context.cost) / v.type.bytes)
    better: list[tuple[int, float, Graph]] = []  # the bytes that it saves, the time that it takes
    nodes = most = 0
    for chosen, alone in _choices(candidates, _number(candidates, missing)):
        new = found.computed_again(frozenset(chosen), alone)
        shares = not alone or len(new.nodes) > nodes
        nodes = len(new.nodes)
        if not shares:
            continue
        tried.add(new)
        least = liveness(new, context).least_height
        if least >= now or (now[0] - least[0]) * 2 < most:
            continue
        height = liveness(new, context).height
        if height[0] <= context.budget:
            return new
        if height < now:
            better.append((now[0] - height[0], work(new.nodes, context.cost) - before, new))
            most = max(most, now[0] - height[0])
    enough = [t for t in better if t[0] * 2 >= most]
    return min(enough, key=lambda t: t[1] / max(t[0], 1))[2] if enough else None


def _number(values: Sequence[Value], size: int) -> int:
    """How many of the first values together have at least this size; all of them, if they have less."""
    totals = itertools.accumulate(v.type.bytes for v in values)
    return next((k for k, total in enumerate(totals, start=1) if total >= size), len(values))


def _choices(values: Sequence[Value], count: int) -> Iterator[tuple[Sequence[Value], bool]]:
    """Values to recompute: the first `count`, then more and more of them, then fewer, then single ones. The flag says
    whether copies share no nodes."""
    sizes = [count + ((len(values) - count) * k + 3) // 4 for k in range(5)] + [count // 2, count // 4]
    yield from ((values[:k], alone) for k in dict.fromkeys(sizes) for alone in (False, True) if k > alone)
    yield from (([v], False) for v in values[1:MOST_ALONE])
