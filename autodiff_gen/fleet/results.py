"""The results of rounds: weights, the timeline, logs, and printed lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from ..codegen.program import Program
from ..device.dataset import Dataset
from ..device.evaluation import accuracy
from ..device.log import opened_logs
from ..device.training import Record
from ..device.weights import read_weights, write_weights
from ..errors import AutodiffError, DataError, counted
from ..host.trainer import Trainer
from ..report.timeline import NAME, RoundRow
from . import twin_states
from .board_group import Members
from .folder import last_of, remove
from .rounds import RoundResult
from .timeline import Timeline, words
from .virtual import Absent


def _file(number: int) -> str:
    return f"round-{number:05}.npz"


class Results:
    """The results in the folder `out`. `trainer`: gets the weights of the last round. `tests`: data with test samples,
    or None."""

    def __init__(self, out: Path, program: Program, trainer: Trainer, tests: Dataset | None) -> None:
        self.out, self.program, self.trainer = out, program, trainer
        self._tests = tests
        self._listeners: list[Callable[[Record], None]] = []
        self._timeline: Timeline | None = None
        self.done, self._begin = 0, 0.0

    def file(self, number: int) -> Path:
        """The weights of a round."""
        return self.out / _file(number)

    def begin(self, fresh: bool) -> int:
        """Give the trainer the weights of the last round in the folder; returns the number of this round, 0 without
        one. `fresh`: remove all rounds first. Raises DataError."""
        if fresh:
            remove(self.out, twin_states.name_of)
        self.done = last_of(self.out, _file, fresh)
        if self.done:
            file = self.file(self.done)
            try:
                self.trainer.load_state_dict(read_weights(file)[0])
            except AutodiffError as error:
                raise DataError(f"{file}: {error}; --fresh begins anew") from None
        return self.done

    def open(self, log: Path | None, tensorboard: Path | None, stack: ExitStack) -> None:
        """Open the timeline and the logs, which `stack` closes. Raises ToolError, DataError."""
        self._timeline = Timeline(self.out / NAME, self.done)
        self._begin = self._timeline.clock
        self._listeners += opened_logs(log, tensorboard, self.done, stack)

    def restore(self, members: Sequence[Members], local_buffers: bool) -> None:
        """Give twins their states after the last round. Raises DataError."""
        if self.done and (twins := twin_states.twins_of(members)) is not None:
            twin_states.restore(self.out, twins, self.done + 1, local_buffers)

    def keep(self, result: RoundResult, members: Sequence[Members], lr: float | None) -> None:
        """Write the results of a round, and print its lines. Its weights are written last: then the round is done."""
        assert self._timeline is not None
        self.trainer.load_state_dict(result.weights, strict=False)
        right = accuracy(self.trainer, self._tests) if self._tests is not None and self._tests.tests else None
        row = self._timeline.add(result, right, members)
        rate = math.nan if lr is None else lr
        seconds = row.end - self._begin
        record = Record(row.round, row.round, row.samples, seconds, result.loss, row.accuracy, rate)
        for listener in self._listeners:
            listener(record)
        if (twins := twin_states.twins_of(members)) is not None:
            twin_states.save(self.out, twins, result.number)
        write_weights(self.file(result.number), self.program, self.trainer.state_dict(), 0, force=True)
        remove(self.out, twin_states.name_of, but=(result.number,))
        _print(row, result)


def _print(row: RoundRow, result: RoundResult) -> None:
    shown = "" if row.accuracy is None else f"   accuracy {row.accuracy:7.2%}"
    if not math.isnan(result.accuracy):
        shown += f"   before it, on boards {result.accuracy:7.2%}"
    shown += "".join(f"   {text}" for text in result.counts.of_a_step())
    failed = f", {row.failed} failed" if row.failed else ""
    boards = f"{counted(row.boards, 'board')}{failed}"
    print(
        f"round {row.round:<4} {boards}   loss {result.loss:.4f}{shown}   {result.seconds:.2f} s", flush=True
    )
    if said := words(row):
        print(f"    {said}", flush=True)
    for failure in result.failures:
        if not isinstance(failure, Absent):
            print(f"    {failure}", flush=True)
