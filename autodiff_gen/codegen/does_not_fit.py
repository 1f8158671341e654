"""The message about a program that does not fit its board's memory: what is missing, what is alive at the peak."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate

from ..ir.names import name_of
from ..lowering.plan import EntryPlan, Placed
from ..targets.board import Board
from ..targets.memory import Space
from .program import Program


def does_not_fit(
    program: Program, spaces: Sequence[Space], small: Sequence[tuple[Space, int]], board: Board | None
) -> str:
    """spaces: the regions that it may use; small: those that are too small, and how many bytes it needs of each."""
    where = f"board {board.id}" if board is not None else "ram"
    budget = sum(s.bytes for s in spaces)
    missing = sum(needed - s.bytes for s, needed in small)
    has = f"{budget} for it"
    if len(spaces) > 1:
        has += f" ({', '.join(f'{s.region} {s.bytes}' for s in spaces)})"
    of = f" of {' and '.join(s.region for s, _ in small)}" if len(spaces) > 1 else ""
    live = ", ".join(f"{name} {size}" for name, size in live_at_peak(program)[:6])
    planned_for_it = program.is_model and program.state_bytes <= budget
    least = ", the least that was found," if planned_for_it else ","
    undivided = ""
    helps = "a smaller batch, smaller layers or an optimizer with less state would help"
    if program.is_model:
        batch = 'a smaller batch (accumulate="mean" makes a step of several) ' if program.batch > 1 else ""
        mixed = next((e.plan.mixed for e in program.entries if e.plan.mixed), "")
        undivided = f"; the batch is not divided: {mixed}" if mixed else ""
        helps = (
            "`autodiff-gen plan` proposes what to train within a budget; fewer layers that train "
            f"(requires_grad_(False)), fewer of their channels (nn.update_channels), int8, {batch}or an "
            "optimizer with less state would help"
        )
    return (
        f"{program.name} needs {program.struct_bytes} bytes{least} {where} has {has}: {missing} bytes{of} are missing; "
        f"parameters and optimizer state take {program.state_bytes}, live at the peak: {live or 'nothing'}{undivided}; "
        f"{helps}"
    )


def live_at_peak(program: Program) -> list[tuple[str, int]]:
    """Tensors of the arena and their bytes at the step that needs most, largest first, then the states."""
    worst: list[tuple[str, int]] = []
    total = -1
    for entry in program.entries:
        plan = entry.plan
        change: Counter[int] = Counter()
        for b in plan.placed:
            change[b.start] += b.bytes
            change[b.end + 1] -= b.bytes
        live = list(accumulate(change[number] for number in range(len(plan.steps) + 1)))
        if max(live) > total:
            total, step = max(live), live.index(max(live))
            held = [b for b in plan.placed if b.start <= step <= b.end]
            worst = [(_describe(plan, b, program.layers), b.bytes) for b in held]
    states = [(s.name, s.type.bytes) for s in program.slots]
    return sorted([*worst, *states], key=lambda item: (-item[1], item[0]))


def _describe(plan: EntryPlan, buffer: Placed, layers: Mapping[str, str]) -> str:
    if not buffer.values:
        return f"the steps inside step {buffer.start} of {plan.graph.name}"
    return f"{name_of(buffer.values[0], layers)} {buffer.values[0].type!r}"
