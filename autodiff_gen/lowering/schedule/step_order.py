"""The order of an entry's steps: what must come before what, what had better come before what, and what each step does
to the bytes that are alive. order.py then finds the order with the lowest peak."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from ...ir.dependences import control_edges, state_of
from ...ir.graph import Graph
from ...ir.node import Node, Value, base, topological
from ...ir.op_kinds import View
from ...ir.traits import added_to
from ...ir.types import Shape, Size, planned_size
from ...ir.views import layout
from ...passes.context import Context
from ..nests.accesses import Accesses
from ..nests.statements import Statements
from ..plan import EntryPlan, Placed, Step
from .bound import surely_alive
from .order import order_steps
from .problem import Steps

Edge = tuple[int, int]  # a step, and one that comes after it


def ordered(plan: EntryPlan, context: Context) -> list[Step]:
    """The steps, numbered in an order with a low peak of live bytes."""
    found = [plan.steps[i] for i in _order(_steps(plan, context))]
    for number, s in enumerate(found, start=1):
        s.number = number
    return found


@functools.lru_cache(maxsize=256)
def _order(steps: Steps) -> tuple[int, ...]:
    """Kept, as stages leave graphs that differ, but not in this."""
    return tuple(order_steps(replace(steps, sizes=[(size + 3) // 4 * 4 for size in steps.sizes])))


def least_alive(plan: EntryPlan, context: Context) -> list[int]:
    """The bytes that are alive at each step in any order."""
    steps = _steps(plan, context)
    return surely_alive(steps, _needs(steps.before))


def _steps(plan: EntryPlan, context: Context) -> Steps:
    """The steps in tuples, which are hashed."""
    return context.stage_result(Steps, plan, False, lambda: _stated(plan, context))


def _stated(plan: EntryPlan, context: Context) -> Steps:
    steps = plan.steps
    ids: dict[Value, int] = {}
    makes = []
    read = {v.base for s in steps for v in s.node.operands}
    reused = [reusable(s, context) for s in steps]
    for s, of_results in zip(steps, reused, strict=True):
        replaced = {v for of in of_results.values() for v in of if v.node is s.node} - read
        mine = [r for r in s.node.results if not (r in plan.states or r in plan.outputs or r in replaced)]
        makes.append(tuple([ids.setdefault(r, len(ids)) for r in mine]))
    reads, reuses = [], []
    for s, of_results in zip(steps, reused, strict=True):
        reads.append(tuple([ids[v.base] for v in s.node.operands if v.base in ids]))
        stored = [(r, _first_reused(of, of_results, ids)) for r, of in of_results.items() if r in ids]
        reuses.append(tuple([(ids[r], tuple([ids[v] for v in of])) for r, of in stored]))
    before = _before(plan, context.first)
    _add_preferences(steps, before)
    scratch = tuple([sum(p.bytes for p in scratch_of(s)) for s in steps])
    sizes = tuple([r.type.bytes for r in ids])
    return Steps(tuple(map(tuple, before)), tuple(makes), tuple(reads), tuple(reuses), scratch, sizes)


def _first_reused(
    values: Sequence[Value], reused: Mapping[Value, Sequence[Value]], ids: Collection[Value]
) -> list[Value]:
    """The values that have memory of their own: of a result that is replaced, those whose memory it may have."""
    parts = ([v] if v in ids else _first_reused(reused.get(v, ()), reused, ids) for v in values)
    return list(dict.fromkeys(itertools.chain.from_iterable(parts)))


def needed_by(graph: Graph, outputs: Collection[str]) -> set[Node]:
    """The nodes that compute the outputs of these names."""
    return set(topological(v for name, v in graph.outputs.items() if name in outputs))


def _before(plan: EntryPlan, first: Collection[str]) -> list[list[int]]:
    """For each step those that must come before it. first: outputs that are complete before any other step begins."""
    graph, steps = plan.graph, plan.steps
    index = {s.node: i for i, s in enumerate(steps)}
    edges = control_edges(graph)
    before = []
    for s in steps:
        earlier = [*(v.base.node for v in s.node.operands), *edges.get(s.node, ())]
        before.append([index[n] for n in earlier if n in index])
    if first:
        urgent = needed_by(graph, first)
        early = [i for node, i in index.items() if node in urgent]
        for node, i in index.items():
            before[i] += [] if node in urgent else early
    return before


def _add_preferences(steps: Sequence[Step], before: list[list[int]]) -> None:
    """Add what had better come before a step, where that is possible."""
    wanted = [*_between_strips(steps), *_before_copies(steps, before)]
    if not wanted:
        return
    needs = _needs(before)
    for p, s in wanted:
        if needs[p] >> s & 1:
            continue
        before[s].append(p)
        if not needs[s] >> p & 1:
            needs = [own | needs[p] if own >> s & 1 else own for own in needs]


def _needs(before: Sequence[Sequence[int]]) -> list[int]:
    """The steps that each step depends on, itself among them, a bit each."""
    needs: dict[int, int] = {}
    pending = list(range(len(before)))
    while pending:
        s = pending[-1]
        missing = [p for p in before[s] if p not in needs]
        pending += missing
        if not missing:
            needs[pending.pop()] = functools.reduce(operator.or_, (needs[p] for p in before[s]), 1 << s)
    return [needs[s] for s in range(len(before))]


def _before_copies(steps: Sequence[Step], before: Sequence[Sequence[int]]) -> Iterator[Edge]:
    """What else the first reader of a step needs, if the step only computes values of the forward pass again: they are
    not computed before they can be read."""
    index = {s.node: i for i, s in enumerate(steps)}
    readers: dict[int, list[int]] = {}
    for s, step in enumerate(steps):
        for node in {v.base.node for v in step.node.operands} & index.keys():
            readers.setdefault(index[node], []).append(s)
    copies = {s for s, step in enumerate(steps) if s in readers and _only_computes_again(step)}
    for s in sorted(copies):
        yield from ((p, s) for p in before[min(readers[s])] if p not in copies)


def _between_strips(steps: Sequence[Step]) -> Iterator[Edge]:
    """Each strip comes after the one before it."""
    strips: dict[tuple[int, int], list[int]] = {}
    for s, step in enumerate(steps):
        if (strip := strip_of(step)) is not None:
            strips.setdefault(strip, []).append(s)
    for (region, k), mine in strips.items():
        yield from ((p, s) for s in mine for p in strips.get((region, k - 1), ()))


def computing(step: Step) -> list[Node]:
    """The nodes of a loop nest that compute something, or the node itself."""
    if step.nest is None:
        return [step.node]
    return [n for n in step.node.regions[0].nodes if n.operands and not isinstance(n.op.lower, View)]


def _only_computes_again(step: Step) -> bool:
    return step.nest is not None and all(n.origin.again for n in computing(step))


def strip_of(step: Step) -> tuple[int, int] | None:
    """The strip of which a step computes parts."""
    found = {n.origin.strip for n in computing(step)}
    return found.pop() if len(found) == 1 else None


def accesses_of(statements: Statements, context: Context) -> Accesses:
    return context.analysis((Accesses, statements), lambda: Accesses(statements))


def pool_of(v: Value) -> str:
    return "int" if v.type.dtype.kind in "iu" and v.type.dtype.size == 4 else "float"


def scratch_of(step: Step) -> list[Placed]:
    """What a step needs for itself while it runs: scratch of a loop nest, the arenas of its regions."""
    out = []
    for v, s in step.scratch.items():
        out.append(
            Placed([v], step, planned_size(s.shape) * s.dtype.size, step.number, step.number, pool_of(v))
        )
    if step.inner is not None:
        for pool in ("float", "int"):
            size = max(part.plan.plans[pool].peak for part in step.inner.parts)
            out += [Placed([], step, size, step.number, step.number, pool)] if size else []
    return out


def _is_stored_as(v: Value, result: Value) -> bool:
    """Whether the elements of v are where the elements of a result of its memory are."""
    at = layout(v)
    return at is not None and at.dense and _lengths(at.shape) == _lengths(result.type.shape)


def _lengths(shape: Shape) -> list[Size]:
    return [d for d in shape if d != 1]


def reusable(s: Step, context: Context) -> dict[Value, list[Value]]:
    """For each result the operands, and other results, whose memory it may be stored in, if the step is the last that
    reads them."""
    if s.inner is not None:
        return {s.node.results[index]: [base(v)] for index, v in s.inner.reuses.items()}
    if s.in_place:
        return {s.node.results[0]: [s.node.operands[0].base]}
    if (old := added_to(s.node)) is not None:
        return {s.node.results[0]: [old.base]} if state_of(old) is None else {}
    if s.nest is None or s.statements is None:
        return {}
    operands = dict.fromkeys(v.base for v in s.node.operands)
    values = [*operands, *s.node.results]
    number = {v: k for k, v in enumerate(values)}
    shown = tuple([number[v.base] for v in s.node.operands])
    alike = (s.statements, shown, tuple([(v.type.dtype, v.type.bytes) for v in operands]))
    found = context.analysis((reusable, *alike), lambda: _reusable_in_nest(s, context))
    return {values[k]: [values[j] for j in reused] for k, reused in found.items()}


def _reusable_in_nest(s: Step, context: Context) -> dict[int, list[int]]:
    """What `reusable` finds of a loop nest, by the numbers of the operands' memory, and of the results after that."""
    assert s.nest is not None and s.statements is not None
    accesses, region = accesses_of(s.statements, context), s.nest.region
    shown = list(zip(s.node.operands, region.params, strict=True))
    sources = list(dict.fromkeys(v.base for v in s.node.operands))
    out: dict[int, list[int]] = {}
    for r in s.node.results:
        result, reused = region.results[r.index], list[int]()
        for number, source in enumerate(sources):
            if source.type.dtype != r.type.dtype or source.type.bytes != r.type.bytes:
                continue
            views = [(v, p) for v, p in shown if v.base is source]
            if all(_is_stored_as(v, result) and accesses.may_share(p, result) for v, p in views):
                reused.append(number)
        for other in s.node.results[: r.index]:
            before = region.results[other.index]
            same = before.type.dtype == result.type.dtype
            same = same and _lengths(before.type.shape) == _lengths(result.type.shape)
            if same and accesses.may_share(before, result):
                reused.append(len(sources) + other.index)
        if reused:
            out[len(sources) + r.index] = reused
    return out
