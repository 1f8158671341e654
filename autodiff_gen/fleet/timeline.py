"""The timeline of a run, which a resumed run continues, and the lines that are printed about it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..device.log import free_name
from ..errors import DataError, counted
from ..report.timeline import LATE, NAME, VANISHED, RoundRow, read_timeline
from .board_group import Members
from .linked import LinkedBoards
from .rounds import RoundResult
from .virtual import VirtualTime


def set_aside(folder: Path) -> None:
    """Rename a timeline of rounds in the folder of a run without rounds. Raises DataError."""
    path = folder / NAME
    if not path.exists():
        return
    other = free_name(path)
    try:
        path.rename(other)
    except OSError as error:
        raise DataError(f"{path}: cannot be renamed: {error.strerror}") from None
    print(f"{path} has rounds of another run; it is now {other}")


class Timeline:
    """The rows of a file up to round `done`; later rows are removed from the file. Raises DataError."""

    def __init__(self, path: Path, done: int) -> None:
        self._path = path
        kept = [row for row in read_timeline(path) if row.round <= done] if done and path.exists() else []
        self.clock = kept[-1].end if kept else 0.0
        try:
            path.write_text("".join(f"{row.line()}\n" for row in kept), encoding="utf-8")
        except OSError as error:
            raise DataError(f"{path}: cannot be written: {error.strerror}") from None

    def add(self, result: RoundResult, accuracy: float | None, members: Sequence[Members]) -> RoundRow:
        """Write the row of a round, and return it."""
        virtual = [m for m in members if isinstance(m, VirtualTime)]
        at_lines = [v for m in members if isinstance(m, LinkedBoards) for v in m.visits]
        seconds = max((*(m.seconds for m in virtual), *(v.seconds for v in at_lines)), default=0.0)
        row = RoundRow(
            result.number,
            bool(virtual),
            self.clock,
            seconds if virtual else result.seconds,
            result.boards,
            len(result.failures),
            result.samples,
            result.loss if math.isfinite(result.loss) else None,
            accuracy,
            [*(v for m in virtual for v in m.visits), *at_lines],
        )
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{row.line()}\n")
        self.clock += row.seconds
        return row


def words(row: RoundRow) -> str:
    """The virtual time of a round, and which boards were late or vanished."""
    last = max(row.visits, key=lambda v: v.seconds, default=None)
    if not row.virtual or last is None:
        return ""
    half = float(np.median([v.seconds for v in row.visits]))
    text = f"virtual time {_time(row.begin)} to {_time(row.end)}: half of the boards took up to "
    text += f"{_time(half)}, board {last.board} ({last.kind}) {_time(last.seconds)}"
    for state in (LATE, VANISHED):
        if found := [v.board for v in row.visits if v.state == state]:
            text += f"; {state}: {_boards(found)}"
    return text


def _boards(numbers: Sequence[int]) -> str:
    """`3 boards (4, 18 and 77)`, the first ones by number."""
    some = ", ".join(map(str, numbers[:5])) + (", ..." if len(numbers) > 5 else "")
    return f"{counted(len(numbers), 'board')} ({some})"


def _time(seconds: float) -> str:
    return f"{seconds:,.1f} s" if seconds >= 10 else f"{seconds:.3g} s"
