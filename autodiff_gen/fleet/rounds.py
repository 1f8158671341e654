"""Rounds of federated averaging: who takes part, what they are sent, and what becomes of their differences."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..codegen.program import Slot
from ..device.differences import F32, Mask
from ..device.rounds import Work, by_name
from ..errors import DataError
from .average import Mean
from .members import Members, Order
from .rounded import rounded
from .twins import Failure, Report

Weights = dict[str, Any]
Heard = Callable[[Report | Failure], None]


@dataclass(frozen=True)
class Plan:
    """What a run does: `steps` local steps of n samples, the model's batch if 0; without steps `epochs` passes over a
    board's own samples. `per_round`: boards of a round, drawn by `seed`; 0: all. mu: of the proximal term."""

    lr: float | None = None
    steps: int = 0
    epochs: int = 0
    n: int = 0
    mu: float = 0.0
    seed: int = 0
    per_round: int = 0
    encoding: str = F32
    local_buffers: bool = False
    mask: Mask | None = None
    evaluate: bool = False

    def order_of(self, number: int, board: int) -> int:
        """The seed of the order of a board's samples in a round."""
        return int(np.random.default_rng((self.seed, number, board)).integers(1 << 32))

    def work(self, number: int, board: int) -> Work:
        """The work of a board in a round."""
        return Work(self.steps, self.lr, self.order_of(number, board), self.n, self.mu, self.epochs)

    def chosen(self, number: int, boards: int) -> list[int]:
        """The boards of a round, in order."""
        if not 0 < self.per_round < boards:
            return list(range(boards))
        rng = np.random.default_rng((self.seed, number))
        return sorted(rng.choice(boards, self.per_round, replace=False).tolist())


@dataclass(frozen=True)
class Result:
    """A round: the weights after it, the boards that answered, and those that did not."""

    number: int
    weights: Weights
    boards: int
    samples: int
    loss: float
    seconds: float
    failures: Sequence[Failure | str]
    accuracy: float = math.nan  # of the weights before it, on the boards' own samples; NaN without evaluation
    cycles: float = 0.0  # of a local step, the mean of boards with a counter; 0 without any


def run_round(
    members: Sequence[Members],
    slots: Sequence[Slot],
    plan: Plan,
    number: int,
    weights: Mapping[str, Any],
    heard: Heard = lambda answer: None,
) -> Result:
    """One round. `heard` is called for each board. Raises DataError if no board answers with a difference."""
    begin = time.monotonic()
    mean, failures = Mean(), list[Failure]()
    chosen = plan.chosen(number, sum(map(len, members)))
    for answer in answers(members, slots, plan, number, weights, chosen, heard):
        if isinstance(answer, Failure):
            failures.append(answer)
        else:
            mean.add(answer)
    if not mean.boards:
        raise no_answer(number, failures)
    new = rounded(slots, moved(slots, weights, mean), plan.seed, number)
    seconds = time.monotonic() - begin
    return Result(
        number, new, mean.boards, mean.samples, mean.loss, seconds, failures, mean.accuracy, mean.cycles
    )


def moved(slots: Sequence[Slot], weights: Mapping[str, Any], mean: Mean) -> Weights:
    """Weights and the mean difference; those of integers become floats."""
    step = by_name(slots, mean.delta)
    return {name: array + step[name] if name in step else array for name, array in weights.items()}


def no_answer(number: int, failures: Sequence[Failure | str]) -> DataError:
    """The error of a round without any difference."""
    first = failures[0] if failures else "none took part"
    reason = first.reason if isinstance(first, Failure) else first
    return DataError(f"round {number}: no board answered: {reason}")


def answers(
    members: Sequence[Members],
    slots: Sequence[Slot],
    plan: Plan,
    number: int,
    weights: Mapping[str, Any],
    boards: Sequence[int],
    heard: Heard = lambda answer: None,
) -> Iterator[Report | Failure]:
    """The answers of some boards to a round, in their order. `heard` is called as they come. A server's weights may be
    floats where boards have integers."""
    order = Order(
        number,
        rounded(slots, weights, plan.seed, number),
        lambda k: plan.work(number, k),
        plan.encoding,
        plan.local_buffers,
        plan.mask,
        plan.evaluate,
    )
    parts = [[k for k in boards if g.first <= k < g.first + len(g)] for g in members]
    # All groups begin before the first answer is awaited.
    begun = [(g.round(order, own), own) for g, own in zip(members, parts, strict=True) if own]
    for found, own in begun:
        yield from _in_order(found, own, heard)


def _in_order(
    answers: Iterator[Report | Failure], boards: Sequence[int], heard: Heard
) -> Iterator[Report | Failure]:
    """Answers in the order of the boards, so that runs are equal bit for bit, and no longer kept than that takes."""
    early: dict[int, Report | Failure] = {}
    missing = iter(boards)
    due = next(missing, None)
    for answer in answers:
        heard(answer)
        early[answer.board] = answer
        while due in early:
            yield early.pop(due)
            due = next(missing, None)
