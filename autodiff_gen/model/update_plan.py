"""Propose which parameters, and which fraction of the channels of weights, to train in a RAM budget.

The rule: begin with nothing. Among all parameters and fractions that an estimate of the memory admits, take the one
that adds most to the squares of the gradients (model/contributions.py) for each byte that it adds
(model/update_costs.py). Repeat until none is admitted. The compiler plans this choice with the budget. The limit of the
next estimate is larger by the bytes that the program leaves free, or smaller by the bytes that it exceeds the budget.
The best choice that fits is proposed.

Lin et al. 2022, "On-Device Training Under 256KB Memory", choose by contribution within a memory constraint too; they
measure the accuracy after training only one layer, for each layer, and search by evolution.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..codegen.program import Program
from ..errors import PlanError
from ..ir.graph import Channels, State
from ..ir.types import planned
from .update_costs import Costs

FRACTIONS = (1 / 8, 1 / 4, 1 / 2, 1.0)
MOST_TRIES = 5  # programs that are compiled to find the best choice that fits: a limit of time

NOISE = 1e-10  # of all squares: rounding errors of gradients that are 0, such as of a bias before a BatchNorm
CLOSE = 50  # a choice that leaves less than 1 / CLOSE of the budget free is close enough: a limit of time


@dataclass(frozen=True)
class ParameterRow:
    """A parameter. fraction: the part of its channels that trains, 0 to 1; bytes: its state, and the values of the
    forward pass that are kept for it and not for parameters chosen before; share: the part that its gradient has of the
    squares of all gradients, 0 to 1."""

    state: State
    fraction: float
    bytes: int
    share: float


@dataclass(frozen=True)
class Proposal:
    """rows: in the order of the model; program: compiled with the budget; tried: the number of compiled choices."""

    rows: Sequence[ParameterRow]
    program: Program
    tried: int


@dataclass(frozen=True)
class _Choice:
    """fractions, bytes: for each parameter as in ParameterRow, 0 if it does not train."""

    fractions: Sequence[float]
    bytes: Sequence[float]


def chosen_channels(state: State, fraction: float) -> Channels | None:
    """The channels that a fraction of them means; None for all."""
    if fraction == 1 or state.channel_axis is None:
        return None
    return Channels(state.channel_axis, fraction)


def propose(
    states: Sequence[State],
    squares: Mapping[State, Any],
    costs: Costs,
    budget: int,
    compiled: Callable[[Mapping[State, Channels | None]], tuple[Program, int]],
) -> Proposal:
    """The best choice that fits. compiled: returns the program that trains these parameters and channels, planned for
    the budget, and the bytes that it leaves free. Raises PlanError if no parameter can train."""
    gains = _gains(states, squares)
    if not any(of[1.0] for of in gains):
        raise PlanError("plan: all gradients are 0 for the calibration data; give other data with --data")
    programs: dict[tuple[float, ...], tuple[Program, int]] = {}
    best: tuple[float, _Choice, Program] | None = None
    low, high, limit, least = 0.0, float("inf"), float(budget), _least(gains, costs)
    while (
        len(programs) < MOST_TRIES
    ):  # low: the largest limit whose program fits; high: the smallest limit whose program does not.
        choice = _choice(gains, costs, max(limit, least))
        key = tuple(choice.fractions)
        if key in programs:
            low, high = (limit, high) if programs[key][1] >= 0 else (low, limit)
            if high - low < budget / CLOSE or high == float("inf"):
                break
            limit = (low + high) / 2
            continue
        fractions = {state: part for state, part in zip(states, key, strict=True) if part}
        programs[key] = compiled({s: chosen_channels(s, part) for s, part in fractions.items()})
        program, free = programs[key]
        value = sum(of[part] for of, part in zip(gains, key, strict=True) if part)
        if free >= 0 and (best is None or value > best[0]):
            best = value, choice, program
        low, high = (limit, high) if free >= 0 else (low, limit)
        limit += free
        if 0 <= free < budget / CLOSE:
            break
        if not low < limit < high:
            limit = (low + high) / 2
    if best is None:
        raise PlanError(_nothing_fits(states, {key: made for key, (made, _) in programs.items()}, budget))
    _, choice, program = best
    return Proposal(_rows(states, gains, choice), program, len(programs))


def _nothing_fits(states: Sequence[State], programs: Mapping[tuple[float, ...], Program], budget: int) -> str:
    fractions, least = min(programs.items(), key=lambda item: item[1].struct_bytes)
    names = [state.name for state, part in zip(states, fractions, strict=True) if part]
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return (
        f"plan: no parameter can train within {budget} bytes: {least.name} takes {least.struct_bytes} for "
        f"{names[0]}{more}; a smaller input or batch, int8, or evaluation mode (net.eval()) would help"
    )


def _gains(states: Sequence[State], squares: Mapping[State, Any]) -> list[dict[float, float]]:
    """For each parameter: fraction -> the sum of the squares of the chosen channels, 0 if the sum is only rounding
    errors. A parameter without channels has only the fraction 1."""
    found: list[dict[float, float]] = []
    for state in states:
        axis, values = state.channel_axis, squares[state]
        count = 1 if axis is None else planned(state.logical.shape)[axis]
        gains = {1.0: float(values.sum())}
        if axis is not None and count > 1:
            numbers, of = state.init.array(), state.type.quantization
            numbers = numbers if of is None else numbers * of.along(numbers.shape)
            along = np.moveaxis(values, axis, 0).reshape(count, -1).sum(1)
            for part in FRACTIONS[:-1]:
                chosen = Channels(axis, part).index(numbers)
                gains[part] = float(along[list(chosen)].sum())
        found.append(gains)
    least = NOISE * sum(gains[1.0] for gains in found)
    return [{part: gain if gain > least else 0.0 for part, gain in gains.items()} for gains in found]


def _choice(gains: Sequence[Mapping[float, float]], costs: Costs, limit: float) -> _Choice:
    """Parameters and fractions: repeatedly take the one that adds most for each byte, while the estimate is within the
    limit."""
    kept, states, working = np.zeros(len(costs.bytes)), 0.0, 0.0
    now, sizes = [0.0] * len(gains), [0.0] * len(gains)
    while True:
        best: tuple[float, int, float, float] | None = None
        total = states + kept.sum()
        for part in FRACTIONS:
            path, own = costs.more(kept, part)
            for p, of in enumerate(gains):
                more = of.get(part, 0.0) - (of[now[p]] if now[p] else 0.0)
                if part <= now[p] or more <= 0:
                    continue
                size = path[p] + own[p] + (part - now[p]) * costs.state[p]
                ratio = more / max(size, 1.0)
                if (best is None or ratio > best[0]) and total + size + max(
                    working, costs.working[p]
                ) <= limit:
                    best = ratio, p, part, size
        if best is None:
            return _Choice(now, sizes)
        _, p, part, size = best
        states += (part - now[p]) * costs.state[p]
        working = max(working, costs.working[p])
        kept, now[p] = costs.with_kept(kept, p, part), part
        sizes[p] += size


def _least(gains: Sequence[Mapping[float, float]], costs: Costs) -> float:
    """The smallest limit that admits one parameter, or a fraction of it."""
    found = []
    for part in FRACTIONS:
        path, own = costs.more(np.zeros(len(costs.bytes)), part)
        sizes = path + own + part * costs.state + costs.working
        found += [size for size, of in zip(sizes, gains, strict=True) if of.get(part, 0.0) > 0]
    return float(min(found))


def _rows(
    states: Sequence[State], gains: Sequence[Mapping[float, float]], choice: _Choice
) -> list[ParameterRow]:
    total = sum(of[1.0] for of in gains)
    return [
        ParameterRow(state, choice.fractions[p], round(choice.bytes[p]), gains[p][1.0] / total)
        for p, state in enumerate(states)
    ]
