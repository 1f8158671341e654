"""`train`: train a board on a data set, step by step; a run can be stopped after any step and resumed there."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..codegen.board_link_layout import step_sizes
from ..errors import DataError
from ..ir.build import make_input
from ..ir.interpreter import evaluate
from ..ir.types import Type, f32
from ..model.model import Model
from .board import Board
from .dataset import Dataset, check_batch
from .errors import GRADIENTS, LOSS, DeviceError, WentBack
from .evaluation import accuracy


@dataclass(frozen=True)
class BatchPlan:
    """The samples of each step, which depend only on the step's number, so that a resumed run equals an uninterrupted
    one. `shuffle`: the seed of each epoch's permutation; None: the order of the data set."""

    samples: int
    batch: int
    epochs: int
    shuffle: int | None = None
    least: int = 1  # fewest samples of a step; a smaller remainder of an epoch is left out
    begin: int = 0  # steps of the board before the first pass over these samples

    @property
    def per_epoch(self) -> int:
        whole, rest = divmod(self.samples, self.batch)
        return whole + (rest >= self.least and rest > 0)

    @property
    def steps(self) -> int:
        return self.begin + self.per_epoch * self.epochs

    @property
    def past(self) -> int:
        """Whole passes over as many samples in the steps before the plan."""
        return self.begin // self.per_epoch

    def place(self, step: int) -> tuple[int, int]:
        """The epoch of a step and its number in the epoch; both count from 0, the epochs of this plan."""
        return divmod(step - self.begin, self.per_epoch)

    def order(self, epoch: int) -> Any:
        """Indices of the samples in the order of `epoch`, which counts from 0. A plan that begins after whole epochs
        of the same data continues their permutations."""
        if self.shuffle is None:
            return np.arange(self.samples)
        return np.random.default_rng((self.shuffle, max(epoch + self.past, 0))).permutation(self.samples)

    def batches(self, first: int) -> Iterator[tuple[int, int, Any]]:
        """(step, epoch, indices) from step `first` on."""
        known, rows = None, np.arange(0)
        for step in range(first, self.steps):
            epoch, k = self.place(step)
            if epoch != known:
                known, rows = epoch, self.order(epoch)
            yield step, epoch, rows[k * self.batch : (k + 1) * self.batch]


@dataclass
class Record:
    """One step; the last of an epoch has the accuracy on the test set."""

    step: int  # steps done, including this one
    epoch: int  # counted from 1
    samples: int  # trained since the start of this run
    seconds: float
    loss: float
    accuracy: float | None = None
    lr: float = math.nan  # the learning rate of the step
    went_back: bool = False  # no step: the board rejected some and restored the checkpoint of `step`


@dataclass
class Run:
    """The result of a training run."""

    losses: list[float] = field(default_factory=list)
    steps: int = 0  # the board's step count
    stopped: bool = False  # by Ctrl-C, before the end
    checkpoint: int | None = None


def make_batch_plan(
    board: Board, data: Dataset, epochs: int, batch: int | None, shuffle: int | None
) -> BatchPlan:
    """The plan for a board and a data set. Raises DataError when the model does not accept the batch size."""
    sizes = step_sizes(board.program)
    least, size = sizes[0], sizes[-1] if batch is None else batch
    check_batch(sizes, size)
    if len(data) < least:
        raise DataError(f"data {data.source}: {len(data)} samples, a step takes at least {least}")
    return BatchPlan(len(data), min(size, len(data)), epochs, shuffle, least)


def run_training(
    board: Board,
    data: Dataset,
    plan: BatchPlan,
    log: Callable[[Record], None],
    *,
    lr: float | None = None,
    save_every: int = 0,
    rate: Callable[[int], float] | None = None,
) -> Run:
    """Train from the board's step to the plan's last step. Ctrl-C stops after the current step.

    `rate`: the learning rate after a number of steps, for the log. If it has flash, the board writes a checkpoint at
    the end, after every `save_every` steps and after Ctrl-C. When the board restores its checkpoint, training
    continues from there; raises DeviceError when it then rejects the same step again.
    """
    run = Run(steps=board.steps)
    names = [a.name for a in sorted(board.layout.inputs, key=lambda a: board.order_of(a.name))]
    begin = time.monotonic()
    samples = 0
    failed = -1  # the last step that made the board restore its checkpoint
    batches = plan.batches(board.steps)
    with noting_interrupts() as interrupted:
        while (following := next(batches, None)) is not None:
            step, epoch, rows = following
            try:
                loss = _step(board, [data.train[n][rows] for n in names], lr)
            except WentBack as back:
                if failed == step:
                    raise _placed(back, step, epoch, rows) from None
                failed = step
                log(
                    Record(back.steps, epoch + 1, samples, time.monotonic() - begin, math.nan, went_back=True)
                )
                del run.losses[max(len(run.losses) - (step - back.steps), 0) :]
                batches = plan.batches(back.steps)
                continue
            except DeviceError as error:
                raise _placed(error, step, epoch, rows) from None
            samples += len(rows)
            run.losses.append(loss)
            run.steps = step + 1
            record = Record(step + 1, epoch + 1, samples, time.monotonic() - begin, loss)
            record.lr = math.nan if rate is None else rate(step)
            if plan.place(step + 1)[1] == 0 and data.tests and not interrupted:
                record.accuracy = accuracy(board, data)
            log(record)
            if save_every and run.steps % save_every == 0 and run.steps < plan.steps:
                run.checkpoint = _save(board)
            if interrupted and run.steps < plan.steps:
                run.stopped = True
                break
        run.checkpoint = _save(board)
    return run


def learning_rate(model: Model, given: float | None) -> Callable[[int], float]:
    """The learning rate after a number of steps: `given`, the optimizer's, or the rate of the model's schedule."""
    base = model.optimizer.lr if given is None else given
    if model.schedule is None:
        return lambda step: base
    t = make_input("t", Type(f32, ()))
    value = model.schedule.rate(base, t)
    return lambda step: float(evaluate([value], {t: step})[0])


def _step(board: Board, arrays: Sequence[Any], lr: float | None) -> float:
    """One step; sent again up to `restore_after` times while it is rejected, so that the board restores its
    checkpoint."""
    for left in range(board.program.restore_after, -1, -1):
        try:
            return board.train_step(*arrays, lr=lr)
        except WentBack:
            raise
        except DeviceError as error:
            if error.status not in (LOSS, GRADIENTS) or left == 0:
                raise
    raise AssertionError("the last try returns or raises")


def _placed(error: DeviceError, step: int, epoch: int, rows: Any) -> DeviceError:
    """The error with its step, epoch, and the first few samples, which count from 0 in the order of the data set."""
    samples = ", ".join(map(str, rows[:4])) + (", ..." if len(rows) > 4 else "")
    return DeviceError(f"step {step + 1:,}, epoch {epoch + 1}, samples {samples}: {error.what}", error.status)


def _save(board: Board) -> int | None:
    if not board.greeting.has_flash:
        return None
    try:
        return board.save()
    except DeviceError as error:
        raise DeviceError(
            f"training reached step {board.steps}, but the checkpoint was not written", error.status
        ) from None


@contextmanager
def noting_interrupts() -> Iterator[Sequence[int]]:
    """The first Ctrl-C is recorded in the list; a second one raises KeyboardInterrupt."""
    seen: list[int] = []

    def note(number: int, _: Any) -> None:
        if seen:
            raise KeyboardInterrupt
        seen.append(number)

    try:
        before = signal.signal(signal.SIGINT, note)
    except ValueError:  # not the main thread, which handles the signals
        yield seen
        return
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, before)
