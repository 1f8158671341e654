"""The part of a model's state that a round of federated training exchanges: parameters that train, floats of buffers.

The optimizer's state and counters stay on each board.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.types import f32, s8
from .program import Program, Slot


@dataclass(frozen=True)
class SharedRun:
    """States of one kind that follow each other: `offset` in bytes from the start of the state, `count` elements."""

    slots: tuple[Slot, ...]
    offset: int
    count: int
    kind: str  # f32 or s8
    is_buffer: bool

    @property
    def end(self) -> int:
        """The offset after its last byte."""
        return self.offset + self.count * self.slots[0].type.dtype.size

    @property
    def comment(self) -> str:
        """The names of the first and the last state."""
        names = [s.name for s in (self.slots[0], self.slots[-1])]
        return " ... ".join(dict.fromkeys(names))


def shared_part(program: Program) -> tuple[SharedRun, ...]:
    """The shared states as runs, in the order of the state. Parameters are floats or 8-bit integers; integers of
    buffers, such as a number of batches, are not shared."""
    runs: list[SharedRun] = []
    offset = 0
    for slot in program.slots:
        dtype, is_buffer = slot.type.dtype, slot.role == "buffer"
        if slot.role == "parameter" or (is_buffer and dtype is f32):
            assert dtype in (f32, s8), slot
            run = SharedRun((slot,), offset, slot.type.bytes // dtype.size, dtype.name, is_buffer)
            if runs and (runs[-1].end, runs[-1].kind, runs[-1].is_buffer) == (offset, run.kind, is_buffer):
                last = runs.pop()
                run = SharedRun((*last.slots, slot), last.offset, last.count + run.count, run.kind, is_buffer)
            runs.append(run)
        offset += 4 * slot.words
    return tuple(runs)
