"""Log losses: a progress line, a CSV file, TensorBoard, and a plot in characters."""

from __future__ import annotations

import csv
import itertools
import math
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TextIO

from ..errors import ToolError, pip_install
from .training import BatchPlan, Record

COLUMNS = ("step", "epoch", "loss", "lr", "accuracy", "seconds")


class Progress:
    """One progress line, rewritten in place on a terminal; otherwise one line per epoch."""

    def __init__(self, plan: BatchPlan, first: int, out: TextIO | None = None) -> None:
        self.plan, self.first = plan, first
        self.out = sys.stderr if out is None else out
        self._printed = 0.0
        self._sum, self._count = 0.0, 0

    def __call__(self, record: Record) -> None:
        if record.went_back:
            new_line = "\n" if self.out.isatty() and self._count else ""
            print(f"{new_line}the board rejected steps and went back to step {record.step:,}", file=self.out)
            self._sum, self._count = 0.0, 0
            return
        self._sum, self._count = self._sum + record.loss, self._count + 1
        last = self.plan.place(record.step)[1] == 0
        if self.out.isatty() and (last or time.monotonic() - self._printed > 0.1):
            self._printed = time.monotonic()
            self.out.write(f"\r\x1b[K{self.line(record)}" + ("\n" if last else ""))
            self.out.flush()
        elif last:
            print(self.line(record), file=self.out, flush=True)
        if last:
            self._sum, self._count = 0.0, 0

    def end(self) -> None:
        """End the progress line."""
        if self.out.isatty() and self._count:
            self.out.write("\n")

    def line(self, record: Record) -> str:
        """`epoch 2/3 [#####-----] 1,234/2,000  312 samples/s  loss 0.4321  accuracy 91.20 %  0:21 left`."""
        per = self.plan.per_epoch
        done = self.plan.place(record.step - 1)[1] + 1
        rate = record.samples / record.seconds if record.seconds > 0 else 0.0
        per_step = record.seconds / max(record.step - self.first, 1)
        bar = "#" * (20 * done // per)
        parts = [
            f"epoch {record.epoch}/{self.plan.epochs} [{bar:-<20}] {done:,}/{per:,}",
            f"{rate:,.0f} samples/s",
            f"loss {self._sum / self._count:.4f}",
        ]
        if record.accuracy is not None:
            parts.append(f"accuracy {100 * record.accuracy:.2f} %")
        parts.append(f"{clock((self.plan.steps - record.step) * per_step)} left")
        return "  ".join(parts)


def clock(seconds: float) -> str:
    """`0:21`, `1:02:03`."""
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60}:{rest % 60:02d}"


class CsvLog:
    """A row for every step, written before the step's checkpoint; a resumed run keeps the rows up to the step where it
    continues. A file with anything else in it is first renamed: `renamed` is its new path.

    `past`: how many epochs were before the plan, for a plan that begins after other steps; the epoch in the last row of
    the file takes precedence."""

    def __init__(self, path: Path, first: int, past: int | None = None) -> None:
        rows = _rows(path)
        kept = [row for row in rows or [] if _is_whole(row) and int(row[0]) <= first]
        self._before = float(kept[-1][-1]) if kept else 0.0
        self._past = 0 if past is None else int(kept[-1][1]) if kept else past
        self.renamed: Path | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_file() and path.stat().st_size and (rows is None or len(kept) < len(rows)):
                self.renamed = free_name(path)
                path.rename(self.renamed)
            goes_on = bool(kept) and self.renamed is None
            self._file = path.open("a" if goes_on else "w", buffering=1, newline="", encoding="utf-8")
        except OSError as error:
            raise ToolError(f"log {path}: cannot be written: {error.strerror}") from None
        self._path, self._writer = path, csv.writer(self._file)
        if not goes_on:
            self._begin(kept)

    def _begin(self, kept: Sequence[Sequence[str]]) -> None:
        self._writer.writerow(COLUMNS)
        self._writer.writerows(kept)

    def __call__(self, r: Record) -> None:
        if r.went_back:
            self._file.flush()
            kept = [row for row in _rows(self._path) or [] if _is_whole(row) and int(row[0]) <= r.step]
            self._file.seek(0)
            self._file.truncate()
            self._begin(kept)
            return
        accuracy = "" if r.accuracy is None else f"{r.accuracy:.6f}"
        seconds = f"{self._before + r.seconds:.3f}"
        self._writer.writerow(
            (r.step, self._past + r.epoch, f"{r.loss:.9g}", f"{r.lr:.9g}", accuracy, seconds)
        )

    def close(self) -> None:
        self._file.close()


def free_name(path: Path) -> Path:
    """`log.1.csv` for log.csv, with the first number that no file has."""
    numbered = (path.with_name(f"{path.stem}.{k}{path.suffix}") for k in itertools.count(1))
    return next(p for p in numbered if not p.exists())


def _rows(path: Path) -> list[list[str]] | None:
    """The rows of a log, an empty row for a last line that was cut; an empty list without a file; None for a file that
    is no log."""
    if not path.exists():
        return []
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = file.readlines()
        rows = [
            row if line.endswith("\n") else [] for line, row in zip(lines, csv.reader(lines), strict=True)
        ]
    except (OSError, ValueError, csv.Error):
        return None
    if not rows or tuple(rows[0]) != COLUMNS:
        return None
    return rows[1:]


def _is_whole(row: Sequence[str]) -> bool:
    if len(row) != len(COLUMNS):
        return False
    try:
        return int(row[0]) >= 0 and int(row[1]) >= 0 and float(row[-1]) >= 0
    except ValueError:
        return False


class TensorBoard:
    """Scalars `loss`, `lr` and `accuracy` by step, for TensorBoard; `first`: the step where a run is resumed."""

    def __init__(self, folder: Path, first: int = 0) -> None:
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            raise ToolError(
                f"--tensorboard needs tensorboardX, which is not installed; run: {pip_install('tensorboardX')}"
            ) from None
        self._writer: Any = SummaryWriter(str(folder), purge_step=first + 1 if first else None)

    def __call__(self, r: Record) -> None:
        if r.went_back:
            return  # the steps are repeated
        self._writer.add_scalar("loss", r.loss, r.step)
        self._writer.add_scalar("lr", r.lr, r.step)
        if r.accuracy is not None:
            self._writer.add_scalar("accuracy", r.accuracy, r.step)

    def close(self) -> None:
        self._writer.close()


def opened_logs(
    table: Path | None, events: Path | None, first: int, stack: ExitStack
) -> list[Callable[[Record], None]]:
    """The logs of a run that continues after step `first`, which `stack` closes. Raises ToolError."""
    logs: list[Callable[[Record], None]] = []
    if table is not None:
        rows = CsvLog(table, first)
        stack.callback(rows.close)
        logs.append(rows)
        if rows.renamed is not None:
            print(f"{table} has rows of another run; it is now {rows.renamed}")
    if events is not None:
        scalars = TensorBoard(events, first)
        stack.callback(scalars.close)
        logs.append(scalars)
    return logs


def curve(losses: Sequence[float], first: int = 0, width: int = 60, height: int = 8) -> str:
    """A plot of losses over steps in characters; each column is the mean of its steps."""
    finite = [x for x in losses if math.isfinite(x)]
    if len(finite) < 2:
        return ""
    width = min(width, len(losses))
    columns = []
    for k in range(width):
        part = losses[len(losses) * k // width : len(losses) * (k + 1) // width]
        part = [x for x in part if math.isfinite(x)]
        columns.append(sum(part) / len(part) if part else math.nan)
    known = [x for x in columns if not math.isnan(x)]
    low, high = min(known), max(known)
    span = high - low or 1.0
    eighths = " ▁▂▃▄▅▆▇█"
    lines = []
    for row in reversed(range(height)):
        text = ""
        for x in columns:
            filled = 0.0 if math.isnan(x) else (x - low) / span * (8 * height - 1) + 1 - 8 * row
            text += eighths[min(8, max(0, int(filled)))]
        label = high if row == height - 1 else low if row == 0 else None
        lines.append(f"{'' if label is None else format(label, '.4g'):>10} |{text.rstrip()}")
    end = str(first + len(losses))
    lines.append(f"{'':>10} +{'-' * width}")
    lines.append(f"{'step':>10}  {first + 1}{end:>{max(width - len(str(first + 1)), len(end) + 1)}}")
    return "\n".join(lines)
