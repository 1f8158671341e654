"""The message about a program that does not fit its board's memory: missing bytes, and tensors alive at the peak."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate

from ..errors import LONGEST, listed
from ..ir.names import name_of
from ..lowering.plan import EntryPlan, PlacedBuffer
from ..targets.board import BoardSpec
from ..targets.memory import Space
from .program import Program, Slot

LEAST = 30  # characters of a list of tensors


def budget_error_text(
    program: Program, spaces: Sequence[Space], small: Sequence[tuple[Space, int]], board: BoardSpec | None
) -> str:
    """spaces: the regions that the program may use; small: the regions that are too small, with the bytes that the
    program needs there."""
    missing = sum(needed - s.bytes for s, needed in small)
    of = f" of {' and '.join(s.region for s, _ in small)}" if len(spaces) > 1 else ""
    least, undivided = ",", ""
    helps = "a smaller batch, smaller layers or less optimizer state would help"
    if program.is_model:
        least = ", the least that was found,"
        batch = 'a smaller batch (accumulate="mean") ' if program.samples > 1 else ""
        mixed = next((e.plan.mixed for e in program.entries if e.plan.mixed), "")
        undivided = f"; the batch is not divided: {mixed}" if mixed else ""
        helps = _helps(batch)
    begin = (
        f"{program.name} needs {program.struct_bytes} bytes{least} {_has(spaces, board)}: "
        f"{missing} bytes{of} are missing; parameters and optimizer state take {program.state_bytes}, "
        "live at the peak: "
    )
    end = f"{undivided}; {helps}"
    return f"{begin}{_sizes(live_at_peak(program), begin, end)}{end}"


def states_error_text(
    name: str, slots: Sequence[Slot], spaces: Sequence[Space], board: BoardSpec | None
) -> str:
    """The message about a model that is not planned, as its parameters and optimizer state exceed the memory."""
    needed = sum(s.type.bytes for s in slots)
    missing = needed - sum(s.bytes for s in spaces)
    largest = sorted(((s.name, s.type.bytes) for s in slots), key=lambda item: (-item[1], item[0]))
    begin = (
        f"{name} needs {needed} bytes for parameters and optimizer state, {_has(spaces, board)}: {missing} bytes "
        "are missing; the largest: "
    )
    end = f"; {_helps()}"
    return f"{begin}{_sizes(largest, begin, end)}{end}"


def _sizes(sizes: Sequence[tuple[str, int]], begin: str, end: str) -> str:
    """Names with their bytes, as many as a message has room for between its begin and its end."""
    room = LONGEST - len(begin) - len(end) - len(" and 1,000 more")
    return listed((f"{name} {size}" for name, size in sizes), max(room, LEAST)) if sizes else "nothing"


def _has(spaces: Sequence[Space], board: BoardSpec | None) -> str:
    """The available bytes, and their regions."""
    where = f"board {board.id}" if board is not None else "ram"
    regions = f" ({', '.join(f'{s.region} {s.bytes}' for s in spaces)})" if len(spaces) > 1 else ""
    return f"{where} has {sum(s.bytes for s in spaces)} for it{regions}"


def _helps(batch: str = "") -> str:
    return f"`autodiff-gen plan` proposes what to train; int8, {batch}or less optimizer state would help"


def live_at_peak(program: Program) -> list[tuple[str, int]]:
    """The tensors that are in the arena at the step that needs most, and all states, with their bytes; largest
    first."""
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


def _describe(plan: EntryPlan, buffer: PlacedBuffer, layers: Mapping[str, str]) -> str:
    if not buffer.values:
        return f"the steps inside step {buffer.start} of {plan.graph.name}"
    return f"{name_of(buffer.values[0], layers)} {buffer.values[0].type!r}"
