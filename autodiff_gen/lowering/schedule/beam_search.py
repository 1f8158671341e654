"""A beam search for an order of steps with a low peak of live bytes, exact while it holds all states.

Which steps are done decides what is live, so states with the same done set are compared and only the best is
kept. A step that needs no more than the peak so far and leaves no more bytes alive than before is taken at
once: no order gains by putting it off.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Iterator
from typing import NamedTuple

from .problem import Problem


class Partial(NamedTuple):
    """Some steps done: the peak on the way, the bytes now alive, the steps that may come next, and how it was
    reached: by the last steps, after the parent.
    """

    done: int
    peak: int
    live: int
    ready: tuple[int, ...]
    last: tuple[int, ...] = ()
    parent: Partial | None = None

    def steps(self) -> list[int]:
        parts: list[tuple[int, ...]] = []
        at: Partial | None = self
        while at is not None:
            parts.append(at.last)
            at = at.parent
        return [s for part in reversed(parts) for s in part]


def _after(
    problem: Problem, state: Partial, s: int, limit: float, seen: set[tuple[int, int]]
) -> Partial | None:
    """The state after step s, and after every step that then costs nothing; None where its peak exceeds the limit, or
    where a state that the steps so far lead to as well has been `seen`."""
    needed, added = problem.effect(~state.done, s)
    done, peak = state.done | problem.bit[s], max(state.peak, state.live + needed)
    if peak > limit or (done, peak) in seen:
        return None
    seen.add((done, peak))
    ready = list(state.ready)
    _take(problem, s, state.done, ready)
    return _after_free_steps(problem, done, peak, state.live + added, ready, [s], state)


def _take(problem: Problem, s: int, done: int, ready: list[int]) -> int:
    """Do step s: the steps that are done then; those that may come next are `ready`, which changes."""
    done |= problem.bit[s]
    ready.remove(s)
    for a in problem.successors[s]:
        if problem.needs[a] & done == problem.needs[a]:
            insort(ready, a)
    return done


def _after_free_steps(
    problem: Problem,
    done: int,
    peak: int,
    live: int,
    ready: list[int],
    last: list[int],
    parent: Partial | None,
) -> Partial:
    """The state after every step that costs nothing, those first that free memory."""
    while True:
        room, left = peak - live, ~done
        best, least = -1, 1
        for s in ready:
            if problem.may_be_free[s]:
                needed, added = problem.effect(left, s)
                if needed > room:
                    continue
                if added < least:
                    best, least = s, added
                if added < 0:
                    break
        if best < 0:
            return Partial(done, peak, live, tuple(ready), tuple(last), parent)
        done = _take(problem, best, done, ready)
        live += least
        last.append(best)


def search(problem: Problem, beam: int, limit: float = math.inf) -> Partial | None:
    """All steps done, with the lowest peak that a beam of so many states finds; None if all exceed the limit."""
    everything = (1 << len(problem.bit)) - 1
    first = [s for s, needs in enumerate(problem.needs) if needs == 0]
    front, best = [_after_free_steps(problem, 0, 0, 0, first, [], None)], None
    while front:
        found: dict[int, Partial] = {}
        seen = set[tuple[int, int]]()
        for state in front:
            if state.done == everything:
                if best is None or state.peak < best.peak:
                    best, limit = state, state.peak - 1
                continue
            for new in _following(problem, state, limit, seen):
                other = found.get(new.done)
                if other is None or (new.peak, new.live) < (other.peak, other.live):
                    found[new.done] = new
        # States have done different numbers of steps; each round, all of them have made one more choice.
        front = sorted(found.values(), key=lambda s: (s.peak, s.live))[:beam]
        if best is not None:
            front = [s for s in front if s.peak <= limit]
    return best


def _following(
    problem: Problem, state: Partial, limit: float, seen: set[tuple[int, int]]
) -> Iterator[Partial]:
    tried = set()
    for s in state.ready:
        if problem.kind[s] not in tried:
            tried.add(problem.kind[s])
            new = _after(problem, state, s, limit, seen)
            if new is not None:
                yield new
