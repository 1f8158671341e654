"""A beam search for an order of steps with a low peak of live bytes, exact while it holds all states.

Which steps are done decides what is live, so states with the same done set are compared and only the best is
kept. A step that needs no more than the peak so far and leaves no more bytes alive than before is taken at
once: no order gains by putting it off.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Iterator
from operator import attrgetter
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
    may_be_free, effects, matter = problem.may_be_free, problem.effects, problem.matter
    while True:
        room, left = peak - live, ~done
        best, least = -1, 1
        for s in ready:
            if may_be_free[s]:
                # most effects are known, without a call
                needed, added = effects[s].get(left & matter[s]) or problem.effect(left, s)
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
        front = sorted(found.values(), key=attrgetter("peak", "live"))[:beam]
        if best is not None:
            front = [s for s in front if s.peak <= limit]
    return best


def _following(
    problem: Problem, state: Partial, limit: float, seen: set[tuple[int, int]]
) -> Iterator[Partial]:
    """The states after each step that may come next, and after every step that then costs nothing; without those whose
    peak exceeds the limit, and those that steps which lead to states in `seen` lead to as well."""
    done, peak, live, ready = state.done, state.peak, state.live, state.ready
    left, tried = ~done, set()
    for s in ready:
        kind = problem.kind[s]
        if kind in tried:
            continue
        tried.add(kind)
        needed, added = problem.effects[s].get(left & problem.matter[s]) or problem.effect(left, s)
        most = live + needed if live + needed > peak else peak
        key = done | problem.bit[s], most
        if most > limit or key in seen:
            continue
        seen.add(key)
        others = list(ready)
        _take(problem, s, done, others)
        yield _after_free_steps(problem, key[0], most, live + added, others, [s], state)
