"""The probes of a benchmark: one for each entry and each of its steps, with layer, phase and multiply-accumulates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..codegen.entries import step_trees
from ..codegen.formulas import of_results
from ..codegen.program import Entry, Program
from ..ir.origin import FORWARD, LOSS
from ..lowering.c import c_query
from ..lowering.phases import Phases
from ..lowering.plan_macs import macs, steps_with_times

CALL = "call"


@dataclass(frozen=True)
class ProbeRecord:
    """One instrumentation point. `step`: its number in the generated C; "" for the code of an entry outside its
    steps."""

    id: int  # counts from 1 through the whole program
    entry: str
    step: str
    text: str  # the formula of the step
    phase: str
    layer: str  # module path of the parameters that it uses or leads to; "" without any
    macs: int  # multiply-accumulates per call of the entry, with a full batch
    kernels: tuple[str, ...] = ()  # symbols of the kernels that it calls


def entry_probes(program: Program) -> list[ProbeRecord]:
    """One probe for each entry, for all that it executes."""
    return [_entry_probe(number, entry) for number, entry in enumerate(program.entries, 1)]


def _entry_probe(number: int, entry: Entry) -> ProbeRecord:
    return ProbeRecord(number, entry.name, "", "checks, call and return", CALL, "", 0)


def probes(program: Program) -> list[ProbeRecord]:
    """All probes, ordered by id."""
    listed: list[ProbeRecord] = []
    for entry in program.entries:
        listed.append(_entry_probe(len(listed) + 1, entry))
        comments = c_query.step_comments(step_trees(entry, program))
        phases = Phases(entry.plan)
        for number, step, times in steps_with_times(entry.plan):
            top = entry.plan.steps[int(number.partition(".")[0]) - 1]
            phase, layer = phases.inside(step, top)
            kernels = dict.fromkeys(k.symbol for _, k in step.calls.values())
            listed.append(
                ProbeRecord(
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


def ids(listed: Sequence[ProbeRecord]) -> Mapping[str, Mapping[str, int]]:
    """Ids by entry and step number, the argument of `emit`."""
    out: dict[str, dict[str, int]] = {}
    for probe in listed:
        if probe.step:
            out.setdefault(probe.entry, {})[probe.step] = probe.id
    return out
