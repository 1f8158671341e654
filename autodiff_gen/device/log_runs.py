"""Read the logs that `--log` writes, and compare runs: a table, and a picture of their losses and accuracies."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import DataError
from ..reading.limits import TEXT
from ..reading.regular import read_text
from ..report.loss_picture import MOST, Curve, Panel, loss_picture, means
from ..report.text_table import table
from .log import COLUMNS

LONGEST = 40  # characters of a name in the picture


@dataclass(frozen=True)
class LoggedRow:
    """A row of a log."""

    step: int
    epoch: int
    loss: float
    accuracy: float | None
    seconds: float


@dataclass(frozen=True)
class LoggedRun:
    """A log: of steps, of rounds of a fleet, or of epochs."""

    name: str
    rows: Sequence[LoggedRow]

    @property
    def unit(self) -> str:
        """What the rows count: a fleet writes a round as step and epoch; so does a run of one step an epoch."""
        return "round" if all(r.step == r.epoch for r in self.rows) and len(self.rows) > 1 else "step"


def read_runs(paths: Sequence[Path]) -> list[LoggedRun]:
    """The logs, with names that differ. Raises DataError."""
    if len(paths) > MOST:
        raise DataError(f"log: {len(paths)} runs, but a picture has at most {MOST} that can be told apart")
    stems = [path.stem for path in paths]
    names = [p.stem if stems.count(p.stem) == 1 else str(p.with_suffix("")) for p in paths]
    for path, name in zip(paths, names, strict=True):
        if names.count(name) > 1:
            raise DataError(f"{path}: is given twice")
    return [LoggedRun(name[-LONGEST:], _rows(path)) for path, name in zip(paths, names, strict=True)]


def _rows(path: Path) -> list[LoggedRow]:
    """The end of a process may have cut the last row."""
    head, *lines = list(csv.reader(read_text(path, DataError, TEXT).splitlines())) or [[]]
    if tuple(head) != COLUMNS:
        raise DataError(f"{path}: is no log: its first line is not {','.join(COLUMNS)}, which --log writes")
    rows: list[LoggedRow] = []
    for number, words in enumerate(lines, 2):
        row = _row(words)
        if row is None and number == len(lines) + 1 and rows:
            break
        if row is None or (rows and row.step <= rows[-1].step):
            raise DataError(f"{path}: line {number} is no row of a log, or not in order")
        rows.append(row)
    if not rows:
        raise DataError(f"{path}: has no row yet")
    if not any(math.isfinite(row.loss) for row in rows):
        raise DataError(f"{path}: no loss is finite")
    return rows


def _row(words: Sequence[str]) -> LoggedRow | None:
    try:
        step, epoch, loss, _, accuracy, seconds = words
        row = LoggedRow(
            int(step), int(epoch), float(loss), float(accuracy) if accuracy else None, float(seconds)
        )
    except ValueError:
        return None
    return row if row.step >= 0 and math.isfinite(row.seconds) else None


def compared(runs: Sequence[LoggedRun]) -> str:
    """A row for each run."""
    rows = []
    for run in runs:
        finite = [row.loss for row in run.rows if math.isfinite(row.loss)]
        accuracies = [row.accuracy for row in run.rows if row.accuracy is not None]
        last = run.rows[-1]
        rows.append(
            (
                run.name,
                f"{last.step:,} {run.unit}s",
                f"{finite[0]:.4g}",
                f"{sum(finite[-len(finite) // 10 :]) / len(finite[-len(finite) // 10 :]):.4g}",
                f"{min(finite):.4g}",
                f"{100 * accuracies[-1]:.2f} %" if accuracies else "-",
                f"{last.seconds:,.1f}",
            )
        )
    head = ("run", "length", "first loss", "mean of the last tenth", "lowest", "accuracy", "seconds")
    return table(head, rows, right=range(1, len(head)))


def picture(runs: Sequence[LoggedRun], by: str) -> str:
    """The losses, and the accuracies where a run has some. Raises DataError for runs that count different things."""
    units = {run.unit: run for run in runs}
    if len(units) > 1 and by != "seconds":
        counts = " and ".join(f"{run.name} counts {unit}s" for unit, run in units.items())
        raise DataError(f"log: {counts}, which are not comparable: compare them by the time, --by seconds")
    unit = next(iter(units)) if by == "step" else by
    losses, sizes = [], set()
    for run in runs:
        points = [(_at(row, by), row.loss) for row in run.rows if math.isfinite(row.loss)]
        drawn, size = means(points)
        sizes.add(size)
        losses.append(Curve(run.name, drawn))
    mean = f", mean of up to {max(sizes)} rows" if max(sizes) > 1 else ""
    panels = [Panel(f"loss by {unit}{mean}", unit, losses)]
    accuracies = [
        Curve(run.name, found)
        for run in runs
        if (found := [(_at(row, by), row.accuracy) for row in run.rows if row.accuracy is not None])
    ]
    if accuracies:
        panels.append(Panel(f"accuracy by {unit}", unit, accuracies))
    return loss_picture(f"loss by {unit} of {', '.join(run.name for run in runs)}", panels)


def _at(row: LoggedRow, by: str) -> float:
    return float(getattr(row, by))
