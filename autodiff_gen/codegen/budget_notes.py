"""What a RAM budget costs: lines for the user."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import counted
from ..ir.graph import Graph
from ..lowering.plan_search import work_without_budget
from .program import Program


def budget_notes(program: Program, graphs: Sequence[Graph], clock_hz: int | None = None) -> list[str]:
    """What the RAM budget changes in the cost of entries, a line for each, against the program without one: time
    by the cycles of an instruction in the cost table, if it has them. graphs: those that the program was compiled of;
    clock_hz: of the core."""
    notes = []
    for entry in program.entries:
        graph = next((g for g in graphs if g.name == entry.name), None)
        if entry.plan.work is None or graph is None:
            continue
        now, before = entry.plan.work, work_without_budget(graph, program.backends)
        more, instructions = now.macs - before.macs, now.instructions - before.instructions
        most = entry.plan.samples
        at_a_time = f", which computes {counted(most, 'sample')} at a time," if most else ""
        shares = more / max(before.macs, 1), instructions / max(before.instructions, 1)
        notes.append(
            f"the RAM budget changes {entry.name}{at_a_time} by {more:+,} multiply-accumulates ({shares[0]:+.1%}) and "
            f"about {instructions:+,.0f} instructions ({shares[1]:+.1%})"
            + _time(instructions * program.backends.cost.cycles, clock_hz)
        )
    return notes


def _time(cycles: float, clock_hz: int | None) -> str:
    if not cycles:
        return ""
    if clock_hz is None:
        return f", some {cycles:+,.0f} cycles"
    return f", some {1000 * cycles / clock_hz:+,.1f} ms at {clock_hz / 1e6:g} MHz"
