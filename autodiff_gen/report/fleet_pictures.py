"""A fleet's run as pictures: loss and accuracy by round, and the boards' work over the time of the rounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..reading.limits import TEXT
from .timeline import ANSWERED, NAME, PARTS, RoundRow, read_timeline

LANES = 32  # boards that have a lane each; of more boards shares are drawn
SHARES = (10, 50, 90, 100)  # percent of the boards that are done after a time
COLOURS = dict(zip(PARTS, ("scratch", "forward", "backward", "update"), strict=True))
WIDTH, HEIGHT, LANE = 1000, 200, 16  # of a drawing, of a curve, of a lane


def read_fleet(path: Path) -> list[RoundRow]:
    """The rounds of a run, whose folder or file this is. Raises DataError."""
    file = path / NAME if path.is_dir() else path
    rows = read_timeline(file, TEXT)
    if not rows:
        raise DataError(f"{file}: has no round yet")
    return rows


@dataclass(frozen=True)
class LinePlot:
    """Numbers by round as points of lines, each with a name, in a drawing of WIDTH by HEIGHT; `low` and `high` are the
    numbers at its lower and upper edge."""

    title: str
    lines: Sequence[tuple[str, str]]
    low: str
    high: str
    dots: Sequence[tuple[float, float, str]] = ()  # x, y and the text of each


@dataclass(frozen=True)
class Bar:
    """A part of a board's round in its lane."""

    x: float
    width: float
    kind: str
    text: str


@dataclass(frozen=True)
class FleetPictures:
    """The pictures of a run on the page."""

    rows: Sequence[RoundRow]
    curves: Sequence[LinePlot]
    lanes: Sequence[tuple[str, Sequence[Bar]]]
    begins: Sequence[float]
    seconds: float

    width, height, lane, parts = WIDTH, HEIGHT, LANE, COLOURS


def fleet_pictures(rows: Sequence[RoundRow]) -> FleetPictures:
    """The pictures of the rounds of a run."""
    boards = {(v.board, v.kind) for row in rows for v in row.visits}
    end = max(row.end for row in rows) or 1.0
    first = min(row.begin for row in rows)
    scale = WIDTH / (end - first or 1.0)
    curves = [_curve("loss", rows, lambda x: f"{x:.4g}"), _curve("accuracy", rows, lambda x: f"{x:.2%}")]
    few = len(boards) <= LANES
    lanes = [(f"{b} {kind}", _lane(b, rows, first, scale)) for b, kind in sorted(boards)] if few else []
    shares = None if few else _shares(rows)
    return FleetPictures(
        rows,
        [curve for curve in (*curves, shares) if curve is not None],
        lanes,
        [(row.begin - first) * scale for row in rows],
        end - first,
    )


def _curve(name: str, rows: Sequence[RoundRow], shown: Any) -> LinePlot | None:
    """The curve of the loss or the accuracy, called `name`, by round; None if there are fewer than two numbers. shown:
    the text of a number."""
    points = [(row.round, getattr(row, name)) for row in rows if getattr(row, name) is not None]
    if len(points) < 2:
        return None
    low, high = min(y for _, y in points), max(y for _, y in points)
    places = [_place(x, y, points, low, high) for x, y in points]
    dots = [
        (px, py, f"round {x}: {name} {shown(y)}") for (px, py), (x, y) in zip(places, points, strict=True)
    ]
    return LinePlot(f"{name} by round", [("", _polyline(places))], shown(low), shown(high), dots)


def _shares(rows: Sequence[RoundRow]) -> LinePlot | None:
    """The seconds after which shares of the boards of a round are done."""
    times = [(row.round, sorted(v.seconds for v in row.visits)) for row in rows if row.visits]
    if len(times) < 2:
        return None
    high = max(own[-1] for _, own in times)
    lines = []
    for share in SHARES:
        points = [(x, own[math.ceil(share / 100 * len(own)) - 1]) for x, own in times]
        lines.append((f"{share} %", _polyline([_place(x, y, points, 0.0, high) for x, y in points])))
    return LinePlot(
        "seconds until 10, 50, 90 and 100 % of the boards of a round are done", lines, "0 s", f"{high:.4g} s"
    )


def _place(
    x: float, y: float, points: Sequence[tuple[float, float]], low: float, high: float
) -> tuple[float, float]:
    first, last = points[0][0], points[-1][0]
    return WIDTH * (x - first) / (last - first), HEIGHT * (1.0 - (y - low) / (high - low or 1.0))


def _polyline(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def _lane(board: int, rows: Sequence[RoundRow], first: float, scale: float) -> list[Bar]:
    bars = []
    for row in rows:
        for visit in row.visits:
            if visit.board != board:
                continue
            at = row.begin - first
            ending = "" if visit.state == ANSWERED else f", {visit.state}"
            for part, kind in COLOURS.items():
                seconds = getattr(visit, part)
                text = f"round {row.round}, board {board}: {part} {seconds:.3g} s of {visit.seconds:.3g} s{ending}"
                if seconds > 0:
                    bars.append(
                        Bar(at * scale, seconds * scale, kind if not ending else f"{kind} missing", text)
                    )
                at += seconds
    return bars
