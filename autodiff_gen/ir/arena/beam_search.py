"""A beam search for an order of steps with a low peak of live bytes, exact while it holds all states.

The steps that are done decide which buffers are live, so states with the same done set are compared and only the best
is kept. A step that needs no more than the peak so far and leaves no more bytes alive than before is taken at once: no
order gains by putting it off.
"""

from __future__ import annotations

import math
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
    ready: int
    last: tuple[int, ...] = ()
    parent: Partial | None = None

    def steps(self) -> list[int]:
        parts: list[tuple[int, ...]] = []
        at: Partial | None = self
        while at is not None:
            parts.append(at.last)
            at = at.parent
        return [s for part in reversed(parts) for s in part]


def _take(problem: Problem, s: int, done: int, ready: int) -> tuple[int, int]:
    """Do step s, one of the steps in `ready`: the steps that are done then, and those that may come next."""
    done |= problem.bit[s]
    ready ^= problem.bit[s]
    for a in problem.successors[s]:
        if problem.needs[a] & done == problem.needs[a]:
            ready |= problem.bit[a]
    return done, ready


def _after_free_steps(
    problem: Problem,
    done: int,
    peak: int,
    live: int,
    ready: int,
    last: list[int],
    parent: Partial | None,
) -> Partial:
    """The state after every step that costs nothing, first the steps that free memory."""
    effects, matter = problem.effects, problem.matter
    while True:
        room, left = peak - live, ~done
        best, least = -1, 1
        pending = ready & problem.may_be_free
        while pending:
            bit = pending & -pending
            pending ^= bit
            s = bit.bit_length() - 1
            # most effects are known, without a call
            needed, added = effects[s].get(left & matter[s]) or problem.effect(left, s)
            if needed > room:
                continue
            if added < least:
                best, least = s, added
            if added < 0:
                break
        if best < 0:
            return Partial(done, peak, live, ready, tuple(last), parent)
        done, ready = _take(problem, best, done, ready)
        live += least
        last.append(best)


def search(problem: Problem, beam: int, limit: float = math.inf) -> Partial | None:
    """All steps done, with the lowest peak that a beam of so many states finds; None if all exceed the limit."""
    everything = (1 << len(problem.bit)) - 1
    first = sum(bit for bit, needs in zip(problem.bit, problem.needs, strict=True) if needs == 0)
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
    """The states after each step that may come next, and after every step that then costs nothing. Only one step of
    each kind is tried. A state is left out if its peak exceeds the limit, or if a step has led to the same done steps
    with the same peak before. seen: the done steps and the peaks so far."""
    done, peak, live, pending = state.done, state.peak, state.live, state.ready
    kinds, effects, matter = problem.kind, problem.effects, problem.matter
    left, tried = ~done, set()
    while pending:
        bit = pending & -pending
        pending ^= bit
        s = bit.bit_length() - 1
        kind = kinds[s]
        if kind in tried:
            continue
        tried.add(kind)
        needed, added = effects[s].get(left & matter[s]) or problem.effect(left, s)
        most = live + needed if live + needed > peak else peak
        key = done | bit, most
        if most > limit or key in seen:
            continue
        seen.add(key)
        after, ready = _take(problem, s, done, state.ready)
        yield _after_free_steps(problem, after, most, live + added, ready, [s], state)
