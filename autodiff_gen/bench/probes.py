"""The probes of a benchmark: one for each entry and each of its steps, with layer, phase and multiply-accumulates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..codegen.entries import step_trees
from ..codegen.formulas import of_results
from ..codegen.program import Program
from ..ir.node import CONST, Value, base
from ..ir.op_kinds import Call, Contraction, RowContraction
from ..ir.origin import FORWARD, LOSS
from ..ir.traits import is_sum
from ..ir.types import planned, planned_size
from ..lowering.c import c_query
from ..lowering.phases import Phases
from ..lowering.plan import EntryPlan, ScanPlan, Step

CALL = "call"


@dataclass(frozen=True)
class Probe:
    """One instrumentation point. `step`: its number in the generated C; "" for the code of an entry outside its
    steps."""

    id: int  # counts from 1 through the whole program
    entry: str
    step: str
    text: str  # what it computes
    phase: str
    layer: str  # module path of the parameters that it uses or leads to; "" without any
    macs: int  # multiply-accumulates per call of the entry, with a full batch
    kernels: tuple[str, ...] = ()  # symbols of the kernels that it calls


def probes(program: Program) -> list[Probe]:
    """All probes, ordered by id."""
    listed: list[Probe] = []
    for entry in program.entries:
        listed.append(Probe(len(listed) + 1, entry.name, "", "checks, call and return", CALL, "", 0))
        comments = c_query.step_comments(step_trees(entry, program))
        phases = Phases(entry.plan)
        for number, step, times in _steps(entry.plan):
            top = entry.plan.steps[int(number.partition(".")[0]) - 1]
            phase, layer = phases.inside(step, top)
            kernels = dict.fromkeys(k.symbol for _, k in step.calls.values())
            listed.append(
                Probe(
                    len(listed) + 1,
                    entry.name,
                    number,
                    of_results(comments[number]),
                    FORWARD if phase == LOSS else phase,
                    layer,
                    times * macs(step),
                    tuple(kernels),
                )
            )
    return listed


def ids(listed: Sequence[Probe]) -> Mapping[str, Mapping[str, int]]:
    """Ids by entry and step number, the argument of `emit`."""
    out: dict[str, dict[str, int]] = {}
    for probe in listed:
        if probe.step:
            out.setdefault(probe.entry, {})[probe.step] = probe.id
    return out


def _steps(
    plan: EntryPlan, prefix: str = "", start: int = 0, times: int = 1
) -> Iterator[tuple[str, Step, int]]:
    """EntryPlan.all_steps with the trip count of each step; both branches of a cond count."""
    for step in plan.steps:
        number = f"{prefix}{start + step.number}"
        yield number, step, times
        for part in step.inner.parts if step.inner is not None else ():
            again = isinstance(step.inner, ScanPlan) and part is step.inner.body
            length = step.inner.times if isinstance(step.inner, ScanPlan) and again else 1
            yield from _steps(part.plan, f"{number}.", part.start, times * length)


# Multiply-accumulates


def macs(step: Step) -> int:
    """Multiply-accumulates of the matrix products and convolutions of a step; padding and skipped zeros count."""
    if step.inner is not None:
        return 0  # its own steps have them
    nodes = step.node.regions[0].nodes if step.node.regions else [step.node]
    total = 0
    for node in nodes:
        if isinstance(node.op.lower, Contraction | RowContraction):
            total += planned_size(node.results[0].type.shape) * planned(node.operands[0].type.shape)[-1]
        elif is_sum(node) and _is_product(node.operands[0]):
            total += planned_size(node.operands[0].type.shape)
    lower = step.node.op.lower
    if isinstance(lower, Call):
        total += sum(lower.macs(call) for call, _ in step.calls.values())
    return total


def _is_product(v: Value) -> bool:
    v = base(v)
    return v.node.op.powers == (1, 1) and all(
        planned_size(o.type.shape) > 1 and base(o).node.op is not CONST for o in v.node.operands
    )
