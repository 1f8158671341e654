"""Rounds of federated averaging: an order to the boards, their answers, and the mean of their differences."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..codegen.program import Slot
from ..device.rounds import by_name
from ..errors import DataError
from .average import WeightedMean
from .board_group import BoardResult, Failure, Members
from .counts import Counts
from .round_request import RoundRequest, RoundSettings
from .rounded import rounded

Weights = dict[str, Any]
Heard = Callable[[BoardResult | Failure], None]


@dataclass(frozen=True)
class RoundResult:
    """A round: the weights after it, how many boards answered, and the boards that failed."""

    number: int
    weights: Weights
    boards: int
    samples: int
    loss: float
    seconds: float
    failures: Sequence[Failure | str]
    accuracy: float = math.nan  # of the weights before it, on the boards' own samples; NaN without evaluation
    counts: Counts = field(default_factory=Counts)


def run_round(
    members: Sequence[Members],
    slots: Sequence[Slot],
    settings: RoundSettings,
    number: int,
    weights: Mapping[str, Any],
    heard: Heard = lambda answer: None,
) -> RoundResult:
    """One round. `heard` is called for each board. Raises DataError if no board answers with a difference."""
    begin = time.monotonic()
    mean, failures = WeightedMean(), list[Failure]()
    chosen = settings.chosen(number, sum(map(len, members)))
    for answer in answers(members, slots, settings, number, weights, chosen, heard):
        if isinstance(answer, Failure):
            failures.append(answer)
        else:
            mean.add(answer)
    if not mean.boards:
        raise no_answer(number, failures)
    new = rounded(slots, moved(slots, weights, mean), settings.seed, number)
    seconds = time.monotonic() - begin
    return RoundResult(
        number, new, mean.boards, mean.samples, mean.loss, seconds, failures, mean.accuracy, mean.counts
    )


def moved(slots: Sequence[Slot], weights: Mapping[str, Any], mean: WeightedMean) -> Weights:
    """The weights plus the mean difference; integer weights become floats."""
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
    settings: RoundSettings,
    number: int,
    weights: Mapping[str, Any],
    boards: Sequence[int],
    heard: Heard = lambda answer: None,
) -> Iterator[BoardResult | Failure]:
    """The answers of some boards to a round, in the order of the boards. `heard` is called as answers come. A server's
    weights may be floats where boards have integers."""
    order = RoundRequest(number, rounded(slots, weights, settings.seed, number), settings)
    parts = [[k for k in boards if g.first <= k < g.first + len(g)] for g in members]
    # All groups begin before the first answer is awaited.
    begun = [(g.round(order, own), own) for g, own in zip(members, parts, strict=True) if own]
    for found, own in begun:
        yield from _in_order(found, own, heard)


def _in_order(
    answers: Iterator[BoardResult | Failure], boards: Sequence[int], heard: Heard
) -> Iterator[BoardResult | Failure]:
    """Answers in the order of the boards, so that runs are equal bit for bit. An answer is kept until its turn."""
    early: dict[int, BoardResult | Failure] = {}
    missing = iter(boards)
    due = next(missing, None)
    for answer in answers:
        heard(answer)
        early[answer.board] = answer
        while due in early:
            yield early.pop(due)
            due = next(missing, None)
