"""Rounds that a strategy of Flower directs, over any Grid."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord
from flwr.app.exception import AppExitException

from ...codegen.program import Program
from ...device.rounds import shared_slots
from ...errors import DataError, listed
from ..counts import Counts
from ..round_request import RoundSettings
from ..rounded import rounded
from ..rounds import RoundResult, Weights, no_answer
from .client import ARRAYS, BOARDS, EXAMPLES, LOSS, METRICS
from .kept_state import KeptState
from .noting_grid import NotingGrid
from .secure_server import SecureMean
from .strategies import OF_MEANS, strategy_of


class FlowerServer:
    """A strategy by its name and options that trains on `drawn` of so many clients, and keeps its state in the folder
    `out`. `secure`: by secure aggregation. Raises DataError."""

    def __init__(
        self,
        strategy: str,
        clients: int,
        drawn: int,
        program: Program,
        settings: RoundSettings,
        out: Path,
        secure: SecureMean | None = None,
    ) -> None:
        self._name = strategy.partition(",")[0]
        self._settings, self._slots = settings, shared_slots(program, settings.local_buffers)
        self._buffers = [slot.name for slot in self._slots if slot.role == "buffer"]
        known = {"client_learning_rate": settings.lr, "proximal_mu": settings.mu}
        self._strategy = strategy_of(strategy, clients, drawn, known)
        if self._buffers and self._name.startswith("DifferentialPrivacy"):
            raise DataError(
                f"--strategy {self._name}: the model has running statistics, which noise would spoil, as variances may "
                "become negative: add --local-buffers, so that they stay on the boards"
            )
        if secure is not None and self._name not in OF_MEANS:
            raise DataError(
                f"--strategy {self._name} compares clients, which --secagg hides: use one of {listed(OF_MEANS)}"
            )
        self._secure = secure
        self._state, self._out = KeptState(out, self._strategy), out
        self._last = 0  # the round whose state the strategy has

    def round(self, grid: Any, number: int, weights: Weights) -> RoundResult:
        """Round `number`, whose state is written. Raises DataError, ToolError."""
        is_missing = self._last != number - 1 and not self._state.load(number - 1, weights)
        of_means = self._name in OF_MEANS
        buffers = self._buffers if of_means else ()  # another strategy limits the influence of single boards
        result = flower_round(self._strategy, grid, number, weights, buffers, of_means, self._secure)
        result = replace(result, weights=rounded(self._slots, result.weights, self._settings.seed, number))
        if is_missing and not self._state.is_empty():
            print(
                f"{self._out} has no state of {self._name} after round {number - 1}: it begins anew",
                flush=True,
            )
        self._state.save(number, result.weights)
        self._last = number
        return result


def flower_round(
    strategy: Any,
    grid: Any,
    number: int,
    weights: Weights,
    buffers: Collection[str] = (),
    of_means: bool = True,
    secure: SecureMean | None = None,
    timeout: float = 3600.0,
) -> RoundResult:
    """One round. `buffers`: names of running statistics, which are averaged whatever the strategy does with the other
    weights. All weights after the round are floats. `of_means`: whether a client may be the mean of boards. `secure`:
    replies are masked, and the strategy gets their mean only. `timeout`: seconds until replies count as lost. Raises
    DataError if no board answers, or for a strategy that needs more than boards report."""
    begin = time.monotonic()
    arrays = ArrayRecord({name: Array(np.asarray(array, np.float32)) for name, array in weights.items()})
    with _usable(strategy, number):
        messages = list(strategy.configure_train(number, arrays, ConfigRecord(), grid))
    if secure is None:
        noting = NotingGrid(grid)
        replies, failures = noting.send_and_receive(messages, timeout=timeout), noting.failures
    else:
        replies, failures = secure.collect(grid, number, messages, timeout)
    answers = [r.content for r in replies if not r.has_error()]
    failures += [text for c in answers for text in c[BOARDS]["failed"]]
    if not answers:
        raise no_answer(number, failures)
    most = max(c[BOARDS]["answered"] for c in answers)
    if most > 1 and not of_means:
        raise DataError(
            f"round {number}: the strategy {type(strategy).__name__} compares clients, and one is the mean of {most} "
            "boards: give each client one board"
        )
    means = {k: np.float32(_mean(answers, [c[ARRAYS][k].numpy() for c in answers])) for k in buffers}
    loss = float(_mean(answers, [c[METRICS][LOSS] for c in answers]))
    boards = sum(c[BOARDS]["answered"] for c in answers)
    samples = sum(c[METRICS][EXAMPLES] for c in answers)
    labels, right = (sum(c[BOARDS][name] for c in answers) for name in ("labels", "right"))
    accuracy = right / labels if labels else math.nan
    counts = Counts(line for c in answers for line in c[BOARDS]["counts"])
    with _usable(strategy, number), np.errstate(all="ignore"):
        new, _ = strategy.aggregate_train(number, replies)
        made = {name: array.numpy().astype(np.float32) for name, array in (new or {}).items()}
    if not new:
        raise no_answer(number, failures or [f"the strategy {type(strategy).__name__} took no reply"])
    if not all(np.isfinite(array).all() for array in made.values()):
        raise DataError(
            f"round {number}: the strategy {type(strategy).__name__} made weights that are not finite: lower its "
            "options, such as eta, or --lr"
        )
    seconds = time.monotonic() - begin
    return RoundResult(number, made | means, boards, samples, loss, seconds, failures, accuracy, counts)


@contextmanager
def _usable(strategy: Any, number: int) -> Iterator[None]:
    """Raises DataError where the strategy needs more than boards report."""
    try:
        yield
    except (AppExitException, ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise DataError(
            f"round {number}: the strategy {type(strategy).__name__} cannot use what boards report, their weights, "
            f"{EXAMPLES} and {LOSS}: {' '.join(str(error).split()) or type(error).__name__}"
        ) from None


def _mean(answers: Sequence[Any], values: Sequence[Any]) -> Any:
    """The mean of a value of each answer, weighted by samples."""
    samples = [c[METRICS][EXAMPLES] for c in answers]
    return np.average(np.stack(values), axis=0, weights=samples)
