"""timeline.jsonl: a line of JSON for each round of a fleet, which `fleet` writes and continues, and `report` draws."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..reading.json_text import parse
from ..reading.limits import Limit
from ..reading.regular import read_text

NAME = "timeline.jsonl"  # in the folder of a run
STATES = ANSWERED, LATE, VANISHED, FAILED = "answered", "late", "vanished", "failed"
PARTS = ("delay", "download", "compute", "upload")  # of a visit
_COUNT, _SECONDS, _FLOAT = 1 << 53, 1e15, 3.5e38  # the most that is accepted


@dataclass(frozen=True)
class Visit:
    """A board in a round, with times in seconds. For a board over the link only the whole time is known: `compute`."""

    board: int
    kind: str
    state: str
    delay: float
    download: float
    compute: float
    upload: float

    @property
    def seconds(self) -> float:
        return self.delay + self.download + self.compute + self.upload

    def cut(self, seconds: float) -> Visit:
        """The part of it until so many seconds after its begin."""
        parts, left = list[float](), seconds
        for part in (self.delay, self.download, self.compute, self.upload):
            parts.append(min(part, left))
            left -= parts[-1]
        return Visit(self.board, self.kind, self.state, *parts)

    def words(self) -> list[Any]:
        """The fields of its line."""
        return [self.board, self.kind, self.state, *(float(f"{getattr(self, x):.6g}") for x in PARTS)]


@dataclass(frozen=True)
class RoundRow:
    """A round: when it began and how long it took, in virtual seconds, or in seconds of the host. visits: of virtual
    boards, and of boards over the link."""

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

    @property
    def end(self) -> float:
        return self.begin + self.seconds

    def line(self) -> str:
        return json.dumps({**vars(self), "visits": [visit.words() for visit in self.visits]})


def read_timeline(path: Path, limit: Limit | None = None) -> list[RoundRow]:
    """The rounds in a file, in ascending order; the end of the process may have cut its last line. Raises DataError."""
    rows: list[RoundRow] = []
    *lines, rest = read_text(path, DataError, limit).split("\n")
    for number, line in enumerate([*lines, rest] if rest else lines, 1):
        row = _row(line)
        if row is None and number > len(lines):
            break
        if row is None or (rows and row.round <= rows[-1].round):
            raise DataError(f"{path}: line {number} is no round of autodiff-gen fleet, or not in order")
        rows.append(row)
    return rows


def _row(line: str) -> RoundRow | None:
    """The round that a line describes; None for other lines."""
    try:
        given = parse(line.encode(), NAME, DataError)
    except DataError:
        return None
    if not isinstance(given, dict) or given.keys() != {f.name for f in fields(RoundRow)}:
        return None
    visits = given["visits"]
    good = (
        _is_count(given["round"])
        and given["round"] > 0
        and isinstance(given["virtual"], bool)
        and all(_is_number(given[name], 0, _SECONDS) for name in ("begin", "seconds"))
        and all(_is_count(given[name]) for name in ("boards", "failed", "samples"))
        and (given["loss"] is None or _is_number(given["loss"], -_FLOAT, _FLOAT))
        and (given["accuracy"] is None or _is_number(given["accuracy"], 0, 1))
        and isinstance(visits, list)
        and all(isinstance(visit, list) and _is_visit(visit) for visit in visits)
    )
    return RoundRow(**{**given, "visits": [Visit(*visit) for visit in visits]}) if good else None


def _is_visit(given: list[Any]) -> bool:
    if len(given) != len(fields(Visit)):
        return False
    board, kind, state, *parts = given
    return (
        _is_count(board)
        and isinstance(kind, str)
        and state in STATES
        and all(_is_number(part, 0, _SECONDS) for part in parts)
    )


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < _COUNT


def _is_number(value: Any, least: float, most: float) -> bool:
    """Whether it is a number in this range; NaN and bool are none."""
    return type(value) in (int, float) and least <= value <= most
