"""A local search from an order of steps to one with a lower peak of live bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from .problem import Problem

Move: TypeAlias = tuple[int, list[int]]  # steps in another order, from this place of the order on


def improved(problem: Problem, order: Sequence[int], least: tuple[int, int] = (0, 0)) -> list[int]:
    """The order after moves that lower the peak, or have fewer steps that reach it: a move puts the last read of a
    buffer before the peak, or its computation after the peak, if no step needs the buffer there. least: a peak and a
    number of steps that no order is below."""
    known = _Order(problem, order)
    above, below = _dependences(problem, order) if known.height > least else ([], [])
    while known.height > least:
        moves = _moves(problem, known.steps, known.alive.index(known.height[0]), above, below)
        better = next((move for move in moves if known.height_after(*move) < known.height), None)
        if better is None:
            break
        known = _Order(problem, known.after(*better))
    return known.steps


def _dependences(problem: Problem, order: Sequence[int]) -> tuple[list[int], list[int]]:
    """For each step the steps that it needs, and the steps that depend on it, itself included."""
    above, below = problem.bit[:], problem.bit[:]
    for s in order:
        for successor in problem.successors[s]:
            above[successor] |= above[s]
    for s in reversed(order):
        for successor in problem.successors[s]:
            below[s] |= below[successor]
    return above, below


def _moves(
    problem: Problem, order: Sequence[int], at: int, above: Sequence[int], below: Sequence[int]
) -> Iterator[Move]:
    """Moves after which a value that is alive at a step, and that the step neither makes nor reads, is not."""
    peak, place = order[at], {s: k for k, s in enumerate(order)}
    before = sum(problem.bit[s] for s in order[:at])
    later = ~before & ~problem.bit[peak]
    for first, maker in enumerate(order[:at]):
        for b in problem.makes[maker]:
            readers = problem.readers.get(b, 0)
            if not readers & later or readers & problem.bit[peak]:
                continue
            if not readers & later & below[peak]:
                early = 0
                for s in _steps_of(readers & later):
                    early |= above[s]
                sooner = sorted(_steps_of(early & later), key=place.__getitem__)
                others = (s for s in order[at + 1 : place[sooner[-1]]] if not problem.bit[s] & early)
                yield at, [*sooner, peak, *others]
            if not problem.bit[maker] & above[peak]:
                late = below[maker] & before
                put_off = sorted(_steps_of(late), key=place.__getitem__)
                yield first, [*(s for s in order[first:at] if not problem.bit[s] & late), peak, *put_off]


def _steps_of(steps: int) -> Iterator[int]:
    while steps:
        bit = steps & -steps
        steps ^= bit
        yield bit.bit_length() - 1


class _Order:
    """An order that others are compared with, and the bytes that are alive at and before each of its steps. height: the
    peak, and how many steps reach it."""

    def __init__(self, problem: Problem, order: Sequence[int]) -> None:
        self.problem, self.steps = problem, list(order)
        self.alive = problem.alive(order)
        self.before, live, left = list[tuple[int, int]](), 0, ~0
        for s in order:
            self.before.append((live, left))
            live += problem.added(left, s)
            left &= ~problem.bit[s]
        self.height = max(self.alive, default=0), self.alive.count(max(self.alive, default=0))

    def after(self, first: int, moved: Sequence[int]) -> list[int]:
        """The order after a move."""
        return [*self.steps[:first], *moved, *self.steps[first + len(moved) :]]

    def height_after(self, first: int, moved: Sequence[int]) -> tuple[int, int]:
        """The height after a move. If the peak after the move is higher, the result is the height of the first steps.
        The values that are alive depend on which steps are done, not on the order of these steps."""
        problem, (live, left) = self.problem, self.before[first]
        alive = []
        for s in moved:
            needed, added = problem.effect(left, s)
            if live + needed > self.height[0]:
                return live + needed, 1
            alive.append(live + needed)
            live += added
            left &= ~problem.bit[s]
        alive += [*self.alive[:first], *self.alive[first + len(moved) :]]
        peak = max(alive)
        return peak, alive.count(peak)
