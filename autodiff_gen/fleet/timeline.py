"""timeline.jsonl: a line of JSON for each round of a run, which `report` draws and a resumed run continues."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ..errors import DataError, counted
from .linked import LinkedBoards
from .members import Members
from .rounds import Result
from .virtual import VirtualTime
from .visits import LATE, VANISHED, Visit

NAME = "timeline.jsonl"


@dataclass(frozen=True)
class Row:
    """A round: when it began and how long it took, in virtual seconds, or in seconds of the host. visits: of virtual
    boards, or of boards over the link."""

    round: int
    virtual: bool
    begin: float
    seconds: float
    boards: int
    failed: int
    samples: int
    loss: float | None
    accuracy: float | None
    visits: Sequence[Visit] = field(default_factory=tuple)

    def line(self) -> str:
        rows = [
            [
                v.board,
                v.kind,
                v.state,
                *(float(f"{x:.6g}") for x in (v.delay, v.download, v.compute, v.upload)),
            ]
            for v in self.visits
        ]
        return json.dumps({**vars(self), "visits": rows})

    def words(self) -> str:
        """Who was late, and what vanished, for virtual boards."""
        last = max(self.visits, key=lambda v: v.seconds, default=None)
        if not self.virtual or last is None:
            return ""
        half = float(np.median([v.seconds for v in self.visits]))
        text = f"virtual time {_time(self.begin)} to {_time(self.begin + self.seconds)}: half of the boards took up to "
        text += f"{_time(half)}, board {last.board} ({last.kind}) {_time(last.seconds)}"
        for state in (LATE, VANISHED):
            if found := [v.board for v in self.visits if v.state == state]:
                text += f"; {state}: {_boards(found)}"
        return text


class Timeline:
    """The rows of a file up to round `done`; others are removed from it."""

    def __init__(self, path: Path, done: int) -> None:
        self._path = path
        kept = []
        for line in (
            path.read_text(encoding="utf-8", errors="replace").splitlines() if done and path.is_file() else ()
        ):
            try:
                row = json.loads(line)
                if int(row["round"]) <= done:
                    kept.append((line, float(row["begin"]) + float(row["seconds"])))
            except (ValueError, KeyError, TypeError):  # cut by the end of the process
                continue
        self.clock = kept[-1][1] if kept else 0.0
        try:
            path.write_text("".join(f"{line}\n" for line, _ in kept), encoding="utf-8")
        except OSError as error:
            raise DataError(f"{path}: cannot be written: {error.strerror}") from None

    def add(self, result: Result, accuracy: float | None, members: Sequence[Members]) -> Row:
        """The row of a round, after it has been written."""
        virtual = [m for m in members if isinstance(m, VirtualTime)]
        linked = [m for m in members if isinstance(m, LinkedBoards)]
        row = Row(
            result.number,
            bool(virtual),
            self.clock,
            max((m.seconds for m in virtual), default=result.seconds),
            result.boards,
            len(result.failures),
            result.samples,
            result.loss if math.isfinite(result.loss) else None,
            accuracy,
            [v for m in virtual or linked for v in m.visits],
        )
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{row.line()}\n")
        self.clock += row.seconds
        return row


def _boards(numbers: Sequence[int]) -> str:
    """`3 boards (4, 18 and 77)`, the first ones by number."""
    some = ", ".join(map(str, numbers[:5])) + (", ..." if len(numbers) > 5 else "")
    return f"{counted(len(numbers), 'board')} ({some})"


def _time(seconds: float) -> str:
    return f"{seconds:,.1f} s" if seconds >= 10 else f"{seconds:.3g} s"
