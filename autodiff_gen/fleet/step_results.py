"""The results of a synchronous run: the weights after epochs and after a stop, the losses of an epoch, and logs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from ..device.dataset import Dataset
from ..device.evaluation import accuracy
from ..device.log import opened_logs
from ..device.session import Session
from ..device.training import Record
from ..device.weights import read_weights, write_weights
from ..errors import AutodiffError, DataError
from ..owned_files import write_file
from ..reading.npz import npz_of, read_npz
from .folder import last_of
from .synchronous import RankLost, Synchronous

LOSSES = "losses.npz"


def _file(steps: int) -> str:
    return f"step-{steps:08}.npz"


class StepResults:
    """The results in the folder `out` of a run that ends after step `end`. `session`: the model of the model file,
    whose states are saved. `losses`: the losses of the steps of this epoch."""

    def __init__(self, out: Path, session: Session, data: Dataset, end: int) -> None:
        self.out, self._session, self._data, self._end = out, session, data, end
        self._trainer = session.trainer()
        self._logs: list[Callable[[Record], None]] = []
        self.losses: list[float] = []

    def begin(self, fresh: bool) -> tuple[dict[str, Any], int]:
        """The state after the last step in the folder, and its number; without one the state of the model, and 0.
        `fresh`: all weights of steps are removed. Raises DataError."""
        last, steps = last_of(self.out, _file, fresh), None
        if last:
            file = self.file(last)
            try:
                state, steps = read_weights(file)
                self._trainer.load_state_dict(state)
            except AutodiffError as error:
                raise DataError(f"{file}: {error}; --fresh begins anew") from None
        return self._trainer.state_dict(), steps or 0

    def open(self, log: Path | None, tensorboard: Path | None, done: int, stack: ExitStack) -> None:
        """Open the logs, which `stack` closes. Raises ToolError."""
        self._logs = opened_logs(log, tensorboard, done, stack)

    def file(self, steps: int) -> Path:
        """The weights after so many steps."""
        return self.out / _file(steps)

    def where(self, group: Synchronous) -> str:
        """Where the weights of the last step are."""
        return f"the weights of step {group.steps:,} of {self._end:,} are {self.file(group.steps)}"

    def continue_epoch(self, done: int) -> None:
        """Continue with the losses of the epoch in which the last run was stopped, after so many steps."""
        path = self.out / LOSSES
        if not path.is_file():
            return
        arrays = read_npz(path, DataError)
        step, losses = (arrays.get(name, np.empty(0)) for name in ("step", "losses"))
        self.losses = losses.tolist() if losses.ndim == 1 and step.shape == () and step == done else []

    def keep(self, group: Synchronous, record: Record) -> None:
        """Write the weights of an epoch, and print its line; the seconds count from the start of this run."""
        group.equalize()
        self._save(group)
        record.accuracy = right = accuracy(self._trainer, self._data) if self._data.tests else None
        for log in self._logs:
            log(record)
        shown = "" if right is None else f"   accuracy {right:7.2%}"
        print(
            f"epoch {record.epoch:<4} step {record.step:<7,} loss {record.loss:.4f}{shown}   {record.seconds:.2f} s",
            flush=True,
        )

    def stop(self, group: Synchronous) -> None:
        """Write the weights of a run that was stopped, and the losses of its epoch. Raises RankLost."""
        self._save(group)
        self.keep_losses(group)

    def rescue(self, group: Synchronous) -> str:
        """Save the state of a rank that answers; says where the same command continues."""
        try:
            self.stop(group)
        except RankLost:
            return "no rank answers; the same command continues after the last epoch"
        return f"{self.where(group)}; the same command continues there"

    def keep_losses(self, group: Synchronous) -> None:
        """Write the losses of an epoch that is not whole, for the mean that the continued run prints."""
        if not self.losses:
            return
        arrays = {"step": np.int64(group.steps), "losses": np.array(self.losses, np.float64)}
        write_file(self.out / LOSSES, npz_of(arrays), force=True)

    def _save(self, group: Synchronous) -> None:
        """Write the state of the ranks, only the states that the user's model has."""
        state, program = group.state(), self._session.program
        own = {name: state[name] for name in program.state_names}
        self._trainer.load_state_dict(own)
        self.out.mkdir(parents=True, exist_ok=True)
        write_weights(self.file(group.steps), program, own, group.steps, force=True)
