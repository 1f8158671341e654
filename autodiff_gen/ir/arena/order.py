"""The order of the steps with the lowest peak of live bytes. A beam search finds it (exact on small graphs), and a
local search improves it. Steps that enlarge the live bytes are put off where that does not raise the peak.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from .beam_search import Partial, search
from .improvement import improved
from .problem import Problem, Steps

# The beam holds WORK / steps states, within these limits. A beam of one state comes first: a wider beam
# drops all states above the peak that it found, which soon are most of its states.
WORK = 8192
NARROWEST, WIDEST = 16, 256


@lru_cache(maxsize=256)
def order_steps(steps: Steps, least: tuple[int, int] = (0, 0)) -> tuple[int, ...]:
    """An order of the steps. Ties prefer the given one, so the result is a function of the input. least: a peak and a
    number of steps that reach it, which no order is below."""
    problem, greedy = problem_of(steps), first_found(steps)
    beam = min(max(WORK // max(len(problem.bit), 1), NARROWEST), WIDEST)
    best = search(problem, beam, greedy.peak) or greedy
    order = improved(problem, best.steps(), least)
    late = _with_late_steps(problem, order)
    return tuple(late if problem.peak(late) <= problem.peak(order) else order)


@lru_cache(maxsize=16)
def problem_of(steps: Steps) -> Problem:
    """The tables of each step; different graphs often have the same steps."""
    return Problem(steps)


@lru_cache(maxsize=16)
def first_found(steps: Steps) -> Partial:
    """The order that a beam of one state finds."""
    found = search(problem_of(steps), 1)
    assert found is not None, "the steps wait for each other in a circle"
    return found


def _with_late_steps(problem: Problem, order: Sequence[int]) -> list[int]:
    """The order, with each step that makes more bytes than it can free moved to just before the first step that needs
    it. If many such steps could begin an order, all orders of the beam begin with them."""
    late: list[int] = []
    for s in reversed(order):
        at = 0
        if problem.made[s] > sum(n for n, _ in problem.frees[s]):
            needs = set(problem.successors[s])
            at = next((i for i, other in enumerate(late) if other in needs), 0)
        late.insert(at, s)
    return late
