"""The order of the steps: the one with the lowest peak of live bytes that a beam search finds (exact on small
graphs), with steps that enlarge what is live put off where that does not raise it.

Which steps are done decides what is live, so states with the same done set are compared and only the best is
kept. A step that needs no more than the peak so far and leaves no more bytes alive than before is taken at
once: no order gains by putting it off.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

WORK = (
    8192  # the beam holds WORK / steps states, so that time grows with the square of the steps and not faster
)
NARROWEST, WIDEST = 16, 256


class _State(NamedTuple):
    """Some steps done: the peak on the way, the bytes now alive, the steps that may come next, and how it was
    reached.
    """

    done: int
    peak: int
    live: int
    ready: tuple[int, ...]
    last: int = -1
    parent: _State | None = None

    def steps(self) -> list[int]:
        out, at = [], self
        while at.parent is not None:
            out.append(at.last)
            at = at.parent
        return out[::-1]


class _Problem:
    def __init__(
        self,
        before: Sequence[Sequence[int]],
        makes: Sequence[Mapping[int, int]],
        reads: Sequence[Sequence[int]],
        reuses: Sequence[Sequence[tuple[int, Sequence[int]]]],
        scratch: Sequence[int],
    ) -> None:
        count = len(before)
        self.bit = [1 << s for s in range(count)]
        self.needs = [sum(1 << p for p in set(before[s])) for s in range(count)]
        self.after: list[list[int]] = [[] for _ in range(count)]
        for s in range(count):
            for p in sorted(set(before[s])):
                self.after[p].append(s)
        size = {b: n for s in range(count) for b, n in makes[s].items()}
        readers: dict[int, int] = {}
        for s in range(count):
            for b in reads[s]:
                readers[b] = readers.get(b, 0) | 1 << s
        self.size, self.readers, self.makes = size, readers, makes
        self.made = [sum(m.values()) for m in makes]
        self.during = [self.made[s] + scratch[s] for s in range(count)]
        self.reuses = [[(size[r], tuple((b, readers[b]) for b in of)) for r, of in pairs] for pairs in reuses]
        self.never_read = [sum(n for b, n in makes[s].items() if b not in readers) for s in range(count)]
        self.frees = [
            [(size[b], readers[b]) for b in sorted(set(reads[s])) if b in size] for s in range(count)
        ]
        self.may_be_free = [
            self.made[s] <= self.never_read[s] + sum(n for n, _ in self.frees[s]) for s in range(count)
        ]
        # Steps of one kind are interchangeable: it is enough to try the first of them.
        kinds: dict[object, int] = {}
        self.kind = [
            kinds.setdefault(
                (
                    self.needs[s],
                    self.during[s],
                    tuple(self.frees[s]),
                    tuple(self.reuses[s]),
                    tuple(self.after[s]),
                    tuple((n, readers.get(b)) for b, n in makes[s].items()),
                ),
                s,
            )
            for s in range(count)
        ]

    def start(self) -> _State:
        return self.after_free_steps(_State(0, 0, 0, tuple(s for s, n in enumerate(self.needs) if n == 0)))

    def added(self, left: int, s: int) -> int:
        """The bytes that are alive after step s and were not before it, where the steps in `left` are not done."""
        size = self.made[s] - self.never_read[s]
        for freed, readers in self.frees[s]:
            if readers & left == self.bit[s]:
                size -= freed
        return size

    def needed(self, left: int, s: int) -> int:
        """The bytes that step s needs beside what is alive before it, where the steps in `left` are not done."""
        size = self.during[s]
        taken: set[int] = set()
        for saved, buffers in self.reuses[s]:
            for b, readers in buffers:
                if readers & left == self.bit[s] and b not in taken:
                    taken.add(b)
                    size -= saved
                    break
        return size

    def step(self, state: _State, s: int, added: int) -> _State:
        done = state.done | self.bit[s]
        ready = list(state.ready)
        ready.remove(s)
        for a in self.after[s]:
            if self.needs[a] & done == self.needs[a]:
                insort(ready, a)
        peak = max(state.peak, state.live + self.needed(~state.done, s))
        return _State(done, peak, state.live + added, tuple(ready), s, state)

    def after_free_steps(self, state: _State) -> _State:
        """The state after every step that costs nothing, those first that free memory."""
        while True:
            room, left = state.peak - state.live, ~state.done
            best, least = -1, 1
            for s in state.ready:
                if self.may_be_free[s] and self.needed(left, s) <= room:
                    added = self.added(left, s)
                    if added < least:
                        best, least = s, added
                    if added < 0:
                        break
            if best < 0:
                return state
            state = self.step(state, best, least)

    def alive(self, order: Sequence[int]) -> list[int]:
        """The bytes that are alive at each step of this order."""
        out, live, left = [], 0, ~0
        for s in order:
            out.append(live + self.needed(left, s))
            live += self.added(left, s)
            left &= ~self.bit[s]
        return out

    def peak(self, order: Sequence[int]) -> int:
        """The most bytes that are alive at once in this order."""
        return max(self.alive(order), default=0)

    def improved(self, order: Sequence[int]) -> list[int]:
        """The order after moves that lower the peak, or have fewer steps that reach it: what is alive at the peak, and
        not needed there, is read for the last time before it, or computed after it."""
        known = _Order(self, order)
        while True:
            at = known.alive.index(known.peak) if known.alive else 0
            best, key = None, (known.peak, known.alive.count(known.peak))
            for new in self.moves(known.steps, at):
                found = known.height(new, key)
                if found < key:
                    best, key = new, found
            if best is None:
                return known.steps
            known = _Order(self, best)

    def moves(self, order: Sequence[int], at: int) -> Iterator[list[int]]:
        """Orders in which a value that is alive at a step, and that the step neither makes nor reads, is not."""
        if not order:
            return
        peak, before, after = order[at], order[:at], order[at + 1 :]
        later = sum(self.bit[s] for s in after)
        for maker in before:
            for b in self.makes[maker]:
                readers = self.readers.get(b, 0)
                if not readers & later or readers & self.bit[peak]:
                    continue
                early = self._needed(after, readers & later)
                if not early & self._dependents(order, peak):
                    sooner = [s for s in after if self.bit[s] & early]
                    yield [*before, *sooner, peak, *(s for s in after if not self.bit[s] & early)]
                late = self._dependents(order, maker)
                if not late & self.bit[peak]:
                    put_off = [s for s in before if self.bit[s] & late]
                    yield [*(s for s in before if not self.bit[s] & late), peak, *put_off, *after]

    def _needed(self, steps: Sequence[int], wanted: int) -> int:
        """Those of the steps, in order, that the wanted ones need, themselves included."""
        for s in reversed(steps):
            if self.bit[s] & wanted:
                wanted |= self.needs[s]
        return wanted

    def _dependents(self, steps: Sequence[int], first: int) -> int:
        """The steps that depend on one of them, itself included."""
        found = self.bit[first]
        for s in steps:
            if self.needs[s] & found:
                found |= self.bit[s]
        return found

    def with_late_steps(self, order: Sequence[int]) -> list[int]:
        """The order with each step that makes more than it can free just before the first that needs it. Where many
        such steps could begin an order, all orders of the beam begin with them."""
        late: list[int] = []
        for s in reversed(order):
            at = 0
            if self.made[s] > sum(n for n, _ in self.frees[s]):
                needs = set(self.after[s])
                at = next((i for i, other in enumerate(late) if other in needs), 0)
            late.insert(at, s)
        return late

    def following(self, state: _State) -> Iterator[_State]:
        tried, left = set(), ~state.done
        for s in state.ready:
            if self.kind[s] not in tried:
                tried.add(self.kind[s])
                yield self.after_free_steps(self.step(state, s, self.added(left, s)))


class _Order:
    """An order with what is alive at and before each of its steps, to which others are compared."""

    def __init__(self, problem: _Problem, order: Sequence[int]) -> None:
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
            size = live + problem.needed(left, s)
            if size > limit[0]:
                return size, 1
            alive.append(size)
            live += problem.added(left, s)
            left &= ~problem.bit[s]
        alive += self.alive[end:]
        peak = max(alive)
        return peak, alive.count(peak)


def order_steps(
    before: Sequence[Sequence[int]],
    makes: Sequence[Mapping[int, int]],
    reads: Sequence[Sequence[int]],
    reuses: Sequence[Sequence[tuple[int, Sequence[int]]]],
    scratch: Sequence[int],
) -> list[int]:
    """An order of steps 0..S-1.

    before[s]: the steps that must come earlier; makes[s]: buffer -> bytes that step s produces; reads[s]: the
    buffers that it reads; reuses[s]: for buffers that it produces, those that it reads whose memory they can have, if
    it is the last to read them; scratch[s]: bytes that it needs for itself. Ties prefer the given order, so the result
    is a function of the input.
    """
    problem = _Problem(before, makes, reads, reuses, scratch)
    everything = (1 << len(before)) - 1
    beam = min(max(WORK // max(len(before), 1), NARROWEST), WIDEST)
    front = [problem.start()]
    best: _State | None = None
    while front:
        found: dict[int, _State] = {}
        for state in front:
            if state.done == everything:
                best = state if best is None or state.peak < best.peak else best
                continue
            for new in problem.following(state):
                other = found.get(new.done)
                if other is None or (new.peak, new.live) < (other.peak, other.live):
                    found[new.done] = new
        # States have done different numbers of steps; each round, all of them have made one more choice.
        front = sorted(found.values(), key=lambda s: (s.peak, s.live))[:beam]
        if best is not None:
            front = [s for s in front if s.peak < best.peak]
    assert best is not None, "the steps wait for each other in a circle"
    order = problem.improved(best.steps())
    late = problem.with_late_steps(order)
    return late if problem.peak(late) <= problem.peak(order) else order
