"""Read the logs that `--log` writes, and compare runs: a table, and a picture of their losses and accuracies."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import DataError, counted
from ..reading.limits import TEXT
from ..reading.regular import read_text
from ..report.loss_picture import MOST, Curve, Panel, loss_picture, means
from ..report.text_table import table
from .log import COLUMNS

LONGEST = 40  # characters of a name in the picture
LARGEST = 3.4028235e38  # of a float32


@dataclass(frozen=True)
class LoggedRow:
    """A row of a log. loss: None if it was not finite; accuracy: None if it was not finite, or not measured."""

    step: int
    epoch: int
    loss: float | None
    accuracy: float | None
    seconds: float


@dataclass(frozen=True)
class LoggedRun:
    """A log: of steps, of rounds of a fleet, or of epochs."""

    name: str
    rows: Sequence[LoggedRow]

    @property
    def unit(self) -> str:
        """The unit of the rows. A fleet writes a round as step and epoch, as a run of one step an epoch does."""
        return "round" if all(r.step == r.epoch for r in self.rows) and len(self.rows) > 1 else "step"


def read_runs(paths: Sequence[Path]) -> list[LoggedRun]:
    """The logs, with names that differ. Raises DataError."""
    stems = [path.stem for path in paths]
    runs: dict[str, LoggedRun] = {}
    for path in paths:
        if paths.count(path) > 1:
            raise DataError(f"{path}: is given twice")
        name = path.stem if stems.count(path.stem) == 1 else str(path.with_suffix(""))
        numbers = ("", *(f" ({k})" for k in range(2, len(paths) + 1)))
        names = (f"{name[-LONGEST + len(number) :]}{number}" for number in numbers)
        free = next(name for name in names if name not in runs)
        runs[free] = LoggedRun(free, _rows(path))
    return [*runs.values()]


def _rows(path: Path) -> list[LoggedRow]:
    """The whole rows: the end of a process may have cut the last one, which then has no end of line."""
    text = read_text(path, DataError, TEXT)
    head, *lines = list(csv.reader(text.splitlines())) or [[]]
    if tuple(head) != COLUMNS:
        raise DataError(f"{path}: is no log: its first line is not {','.join(COLUMNS)}, which --log writes")
    rows: list[LoggedRow] = []
    for number, words in enumerate(lines if text.endswith("\n") else lines[:-1], 2):
        row = _row(words)
        if row is None or (rows and row.step <= rows[-1].step):
            raise DataError(f"{path}: line {number} is no row of a log, or not in order")
        rows.append(row)
    if not rows:
        raise DataError(f"{path}: has no row yet")
    if all(row.loss is None for row in rows):
        raise DataError(f"{path}: no loss is finite")
    return rows


def _row(words: Sequence[str]) -> LoggedRow | None:
    try:
        step, epoch, loss, _, accuracy, seconds = words
        time = _finite(seconds)
        if time is None or int(step) < 0 or _finite(step) is None or _finite(epoch) is None:
            return None
        return LoggedRow(int(step), int(epoch), _finite(loss), _finite(accuracy) if accuracy else None, time)
    except ValueError:
        return None


def _finite(word: str) -> float | None:
    """A number that float32 can hold, None for others, such as nan. Raises ValueError."""
    x = float(word)
    return x if abs(x) <= LARGEST else None


def compared(runs: Sequence[LoggedRun]) -> str:
    """A table with a row for each run."""
    rows = []
    for run in runs:
        finite = [row.loss for row in run.rows if row.loss is not None]
        accuracies = [row.accuracy for row in run.rows if row.accuracy is not None]
        last = run.rows[-1]
        rows.append(
            (
                run.name,
                counted(last.step, run.unit),
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
    """The losses, and the accuracies where a run has some. Raises DataError for too many runs, and for steps of
    runs that count different things."""
    if len(runs) > MOST:
        raise DataError(f"log: {len(runs)} runs, but a picture has at most {MOST} that can be told apart")
    units = {run.unit: run for run in runs}
    if len(units) > 1 and by == "step":
        counts = " and ".join(f"{run.name} counts {unit}s" for unit, run in units.items())
        raise DataError(f"log: {counts}, which are not comparable: give --by epoch or --by seconds")
    unit = next(iter(units)) if by == "step" else by
    losses, sizes = [], set()
    for run in runs:
        points = [(_at(row, by), row.loss) for row in run.rows if row.loss is not None]
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
