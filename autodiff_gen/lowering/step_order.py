"""The order of an entry's steps, and which memory each result of a step may reuse."""

from __future__ import annotations

from ..ir.added_terms import added_to
from ..ir.dependences import state_of
from ..ir.liveness import Computation, Liveness, pool_of
from ..ir.node import Node, Value, base
from ..ir.op_kinds import View
from ..ir.types import planned_size
from ..ir.views import is_stored_as, lengths
from ..passes.context import Context
from .loops.nest_accesses import NestAccesses
from .loops.statements import Statements
from .plan import EntryPlan, PlacedBuffer, PlannedStep


def liveness_of_plan(plan: EntryPlan, context: Context) -> Liveness:
    """The liveness of the values of a plan."""
    computations = [_computation(s, context) for s in plan.steps]
    return Liveness(plan.graph, computations, {*plan.states, *plan.outputs}, context.first)


def _computation(step: PlannedStep, context: Context) -> Computation:
    node = step.node
    reads = list(dict.fromkeys(v.base for v in node.operands))
    scratch = sum(p.bytes for p in scratch_of(step))
    reuses = reusable(step, context)
    return Computation([node], computing(step), reads, node.results, scratch, reuses, step.nest is not None)


def computing(step: PlannedStep) -> list[Node]:
    """The nodes of a loop nest that compute something, or the node itself."""
    if step.nest is None:
        return [step.node]
    return [n for n in step.node.regions[0].nodes if n.operands and not isinstance(n.op.lower, View)]


def uses_of(statements: Statements, context: Context) -> NestAccesses:
    return context.analysis((NestAccesses, statements), lambda: NestAccesses(statements))


def scratch_of(step: PlannedStep) -> list[PlacedBuffer]:
    """The memory that a step needs while it runs: scratch of a loop nest, the arenas of its regions."""
    out = []
    for v, s in step.scratch.items():
        out.append(
            PlacedBuffer(
                [v], step, planned_size(s.shape) * s.dtype.size, step.number, step.number, pool_of(v)
            )
        )
    if step.inner is not None:
        for pool in ("float", "int"):
            size = max(part.plan.plans[pool].peak for part in step.inner.parts)
            out += [PlacedBuffer([], step, size, step.number, step.number, pool)] if size else []
    return out


def reusable(s: PlannedStep, context: Context) -> dict[Value, list[Value]]:
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


def _reusable_in_nest(s: PlannedStep, context: Context) -> dict[int, list[int]]:
    """The result of `reusable` for a loop nest, by the numbers of the operands' memory, and of the results after
    that."""
    assert s.nest is not None and s.statements is not None
    uses, region = uses_of(s.statements, context), s.nest.region
    shown = list(zip(s.node.operands, region.params, strict=True))
    sources = list(dict.fromkeys(v.base for v in s.node.operands))
    out: dict[int, list[int]] = {}
    for r in s.node.results:
        result, reused = region.results[r.index], list[int]()
        for number, source in enumerate(sources):
            if source.type.dtype != r.type.dtype or source.type.bytes != r.type.bytes:
                continue
            views = [(v, p) for v, p in shown if v.base is source]
            if all(is_stored_as(v, result) and uses.may_share(p, result) for v, p in views):
                reused.append(number)
        for other in s.node.results[: r.index]:
            before = region.results[other.index]
            same = before.type.dtype == result.type.dtype
            same = same and lengths(before.type.shape) == lengths(result.type.shape)
            if same and uses.may_share(before, result):
                reused.append(len(sources) + other.index)
        if reused:
            out[len(sources) + r.index] = reused
    return out
