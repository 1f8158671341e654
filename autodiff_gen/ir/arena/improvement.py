"""A local search from an order of steps to one with a lower peak of live bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .problem import Problem


def improved(problem: Problem, order: Sequence[int], least: tuple[int, int] = (0, 0)) -> list[int]:
    """The order after moves that lower the peak, or have fewer steps that reach it: what is alive at the peak, and
    not needed there, is read for the last time before it, or computed after it. least: a peak and a number of steps
    that no order is below."""
    known = _Order(problem, order)
    while True:
        at = known.alive.index(known.peak) if known.alive else 0
        height = known.peak, known.alive.count(known.peak)
        moves = _moves(problem, known.steps, at) if height > least else ()
        better = next((new for new in moves if known.height(new, height) < height), None)
        if better is None:
            return known.steps
        known = _Order(problem, better)


def _moves(problem: Problem, order: Sequence[int], at: int) -> Iterator[list[int]]:
    """Orders in which a value that is alive at a step, and that the step neither makes nor reads, is not."""
    if not order:
        return
    peak, before, after = order[at], order[:at], order[at + 1 :]
    later = sum(problem.bit[s] for s in after)
    needed, dependents = _needed(problem, before, problem.needs[peak]), _dependents(problem, after, peak)
    for maker in before:
        for b in problem.makes[maker]:
            readers = problem.readers.get(b, 0)
            if not readers & later or readers & problem.bit[peak]:
                continue
            if not readers & later & dependents:
                early = _needed(problem, after, readers & later)
                sooner = [s for s in after if problem.bit[s] & early]
                yield [*before, *sooner, peak, *(s for s in after if not problem.bit[s] & early)]
            if not problem.bit[maker] & needed:
                late = _dependents(problem, before, maker)
                put_off = [s for s in before if problem.bit[s] & late]
                yield [*(s for s in before if not problem.bit[s] & late), peak, *put_off, *after]


def _needed(problem: Problem, steps: Sequence[int], wanted: int) -> int:
    """Those of the steps, in order, that the wanted ones need, themselves included."""
    for s in reversed(steps):
        if problem.bit[s] & wanted:
            wanted |= problem.needs[s]
    return wanted


def _dependents(problem: Problem, steps: Sequence[int], first: int) -> int:
    """The steps that depend on one of them, itself included."""
    found = problem.bit[first]
    for s in steps:
        if problem.needs[s] & found:
            found |= problem.bit[s]
    return found


class _Order:
    """An order with what is alive at and before each of its steps, to which others are compared."""

    def __init__(self, problem: Problem, order: Sequence[int]) -> None:
        self.problem, self.steps = problem, list(order)
        self.alive = problem.alive(order)
        self.before, live, left = list[tuple[int, int]](), 0, ~0
        for s in order:
            self.before.append((live, left))
            live += problem.added(left, s)
            left &= ~problem.bit[s]
        self.peak = max(self.alive, default=0)

    def height(self, order: Sequence[int], limit: tuple[int, int]) -> tuple[int, int]:
        """The peak of another order, and how many of its steps reach it; where it exceeds the limit, that of its first
        steps. What is alive depends on which steps are done, not on their order."""
        problem, own, end = self.problem, self.steps, len(self.steps)
        first = next((k for k, s in enumerate(order) if s != own[k]), end)
        while end > first and order[end - 1] == own[end - 1]:
            end -= 1
        live, left = self.before[first] if first < end else (0, 0)
        alive = self.alive[:first]
        for s in order[first:end]:
            needed, added = problem.effect(left, s)
            if live + needed > limit[0]:
                return live + needed, 1
            alive.append(live + needed)
            live += added
            left &= ~problem.bit[s]
        alive += self.alive[end:]
        peak = max(alive)
        return peak, alive.count(peak)
