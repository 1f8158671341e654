"""What a run keeps of its rounds: weights, the timeline, logs, and the lines that it prints."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from ..codegen.link_layout import LinkLayout
from ..codegen.program import Program
from ..device.dataset import Dataset
from ..device.evaluation import label_and_scores, outputs_of
from ..device.log import CsvLog, TensorBoard
from ..device.metrics import accuracy, confusion_matrix
from ..device.training import Record
from ..device.weights import read_weights, write_weights
from ..errors import AutodiffError, DataError, counted
from ..host.trainer import Trainer
from .members import Members
from .rounds import Result
from .timeline import NAME, Row, Timeline
from .virtual import Absent


class Results:
    """In the folder `out`; `trainer`: with the weights of the last round. `tests`: data with test samples, or None."""

    def __init__(
        self, out: Path, program: Program, trainer: Trainer, layout: LinkLayout, tests: Dataset | None
    ) -> None:
        self.out, self.program, self.trainer = out, program, trainer
        self._layout, self._tests = layout, tests
        self._listeners: list[Callable[[Record], None]] = []
        self._timeline: Timeline | None = None
        self.done, self._begin = 0, 0.0

    def file(self, number: int) -> Path:
        """The weights of a round."""
        return self.out / f"round-{number:05}.npz"

    def begin(self, fresh: bool) -> int:
        """The last round in the folder, whose weights the trainer gets; 0 without one. `fresh`: all rounds are removed.
        Raises DataError."""
        found = sorted(self.out.glob("round-*.npz"))
        if fresh:
            for file in found:
                file.unlink()
            found = []
        if found:
            try:
                self.trainer.load_state_dict(read_weights(found[-1])[0])
            except AutodiffError as error:
                raise DataError(f"{found[-1]}: {error}; --fresh begins anew") from None
            self.done = int(found[-1].stem.rpartition("-")[2])
        return self.done

    def open(self, log: Path | None, tensorboard: Path | None, stack: ExitStack) -> None:
        """Open the timeline and the logs, which `stack` closes. Raises ToolError, DataError."""
        self._timeline = Timeline(self.out / NAME, self.done)
        self._begin = self._timeline.clock
        if log is not None:
            table = CsvLog(log, self.done)
            stack.callback(table.close)
            self._listeners.append(table)
            if table.renamed is not None:
                print(f"{log} has rows of another run; it is now {table.renamed}")
        if tensorboard is not None:
            events = TensorBoard(tensorboard, self.done)
            stack.callback(events.close)
            self._listeners.append(events)

    def keep(self, result: Result, members: Sequence[Members], lr: float | None) -> None:
        """Write a round, and print its lines. Its weights are written last: with them it is done."""
        assert self._timeline is not None
        self.trainer.load_state_dict(result.weights, strict=False)
        row = self._timeline.add(result, self._accuracy(), members)
        rate = math.nan if lr is None else lr
        seconds = row.begin + row.seconds - self._begin
        record = Record(row.round, row.round, row.samples, seconds, result.loss, row.accuracy, rate)
        for listener in self._listeners:
            listener(record)
        write_weights(self.file(result.number), self.program, self.trainer.state_dict(), 0, force=True)
        _print(row, result)

    def _accuracy(self) -> float | None:
        """The share of the test samples that the weights recognise; None without classes or test samples."""
        found = label_and_scores(self._layout)
        if found is None or self._tests is None or not self._tests.tests:
            return None
        label, scores = found
        inputs = {a.name: self._tests.test[a.name] for a in self._layout.inputs if not a.is_target}
        guessed = outputs_of(self.program, self.trainer, inputs)[scores.name]
        matrix = confusion_matrix(self._tests.test[label.name], guessed.argmax(axis=1), guessed.shape[1])
        return accuracy(matrix) if matrix.any() else None


def _print(row: Row, result: Result) -> None:
    shown = "" if row.accuracy is None else f"   accuracy {row.accuracy:7.2%}"
    failed = f", {row.failed} failed" if row.failed else ""
    boards = f"{counted(row.boards, 'board')}{failed}"
    print(
        f"round {row.round:<4} {boards}   loss {result.loss:.4f}{shown}   {result.seconds:.2f} s", flush=True
    )
    if words := row.words():
        print(f"    {words}", flush=True)
    for failure in result.failures:
        if not isinstance(failure, Absent):
            print(f"    {failure}", flush=True)
