"""Lines for the user about the work of a program and the cost of a RAM budget."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import counted
from ..lowering.plan_macs import macs_of
from .instruction_estimate import instructions
from .program import Program

UNLIMITED = 1 << 40  # bytes of RAM


def work_notes(program: Program, clock_hz: int | None = None) -> list[str]:
    """The work of each entry of a program, a line for each; clock_hz: of the core."""
    cycles = program.backends.cost.cycles
    return [
        f"{entry.name}: {macs_of(entry.plan):,} multiply-accumulates and about {found:,.0f} instructions"
        + _time(found * cycles, clock_hz, "")
        for entry, found in zip(program.entries, instructions(program).values(), strict=True)
    ]


def budget_notes(program: Program, without: Callable[[], Program], clock_hz: int | None = None) -> list[str]:
    """A line for each entry whose cost a RAM budget changes, compared with the program without a budget. Time follows
    from the cycles of an instruction, if the cost table has them. without: compiles the program without a budget;
    clock_hz: of the core."""
    changed = [entry for entry in program.entries if entry.plan.work is not None]
    if not changed:
        return []
    others = without()
    before, now = instructions(others), instructions(program)
    plans = {entry.name: entry.plan for entry in others.entries}
    notes = []
    for entry in changed:
        name, most = entry.name, entry.plan.samples
        macs = macs_of(plans[name])
        more, added = macs_of(entry.plan) - macs, now[name] - before[name]
        at_a_time = f", which computes {counted(most, 'sample')} at a time," if most else ""
        shares = more / max(macs, 1), added / max(before[name], 1)
        notes.append(
            f"the RAM budget changes {name}{at_a_time} by {more:+,} multiply-accumulates ({shares[0]:+.1%}) and "
            f"about {added:+,.0f} instructions ({shares[1]:+.1%})"
            + _time(added * program.backends.cost.cycles, clock_hz, "+")
        )
    return notes


def _time(cycles: float, clock_hz: int | None, sign: str) -> str:
    if not cycles:
        return ""
    if clock_hz is None:
        return f", some {cycles:{sign},.0f} cycles"
    return f", some {1000 * cycles / clock_hz:{sign},.1f} ms at {clock_hz / 1e6:g} MHz"
