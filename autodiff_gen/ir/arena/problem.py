"""The memory that an order of steps needs: each step makes buffers and reads some, and a buffer is alive from the step
that makes it to the last step that reads it. Sets of steps are integers with a bit for each step.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Steps:
    """The data of steps 0..S-1 that an order depends on.

    before[s]: the steps that must come earlier than step s; makes[s], reads[s]: the buffers that it produces and reads;
    reuses[s]: for each buffer that it produces, the buffers that it reads and whose memory the new one can reuse, if no
    later step reads them; scratch[s]: bytes that it needs for itself; sizes: the bytes of each buffer.
    """

    before: Sequence[Sequence[int]]
    makes: Sequence[Sequence[int]]
    reads: Sequence[Sequence[int]]
    reuses: Sequence[Sequence[tuple[int, Sequence[int]]]]
    scratch: Sequence[int]
    sizes: Sequence[int]


class Problem:
    """Tables derived from the steps."""

    def __init__(self, steps: Steps) -> None:
        before, makes, reads, size = steps.before, steps.makes, steps.reads, steps.sizes
        count = len(before)
        self.bit = [1 << s for s in range(count)]
        self.needs = [sum(1 << p for p in set(before[s])) for s in range(count)]
        self.successors: list[list[int]] = [[] for _ in range(count)]
        for s in range(count):
            for p in sorted(set(before[s])):
                self.successors[p].append(s)
        made = {b for buffers in makes for b in buffers}
        readers: dict[int, int] = {}
        for s in range(count):
            for b in reads[s]:
                readers[b] = readers.get(b, 0) | 1 << s
        self.readers, self.makes = readers, makes
        self.made = [sum(size[b] for b in m) for m in makes]
        self.during = [self.made[s] + steps.scratch[s] for s in range(count)]
        self.reuses = [
            [(size[r], tuple((b, readers[b]) for b in of)) for r, of in pairs] for pairs in steps.reuses
        ]
        self.never_read = [sum(size[b] for b in m if b not in readers) for m in makes]
        self.frees = [[(size[b], readers[b]) for b in sorted(made.intersection(r))] for r in reads]
        self.may_be_free = sum(
            self.bit[s]
            for s in range(count)
            if self.made[s] <= self.never_read[s] + sum(n for n, _ in self.frees[s])
        )
        self.effects: list[dict[int, tuple[int, int]]] = [{} for _ in range(count)]
        self.matter = [
            functools.reduce(
                operator.or_,
                (r for _, r in itertools.chain(self.frees[s], *(of for _, of in self.reuses[s]))),
                0,
            )
            for s in range(count)
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
                    tuple(self.successors[s]),
                    tuple((size[b], readers.get(b)) for b in makes[s]),
                ),
                s,
            )
            for s in range(count)
        ]

    def effect(self, left: int, s: int) -> tuple[int, int]:
        """The results of `needed` and `added`; stored, since few of the steps in `left` matter for them."""
        known, key = self.effects[s], left & self.matter[s]
        found = known.get(key)
        if found is None:
            found = known[key] = self.needed(left, s), self.added(left, s)
        return found

    def added(self, left: int, s: int) -> int:
        """By how much the live bytes grow from before step s to after it, negative if they shrink; the steps in `left`
        are not done."""
        size = self.made[s] - self.never_read[s]
        for freed, readers in self.frees[s]:
            if readers & left == self.bit[s]:
                size -= freed
        return size

    def needed(self, left: int, s: int) -> int:
        """The bytes that step s needs in addition to the live bytes before it, where the steps in `left` are not
        done."""
        size = self.during[s]
        taken: set[int] = set()
        for saved, buffers in self.reuses[s]:
            for b, readers in buffers:
                if readers & left == self.bit[s] and b not in taken:
                    taken.add(b)
                    size -= saved
                    break
        return size

    def alive(self, order: Sequence[int]) -> list[int]:
        """The bytes that are alive at each step of this order."""
        out, live, left = [], 0, ~0
        for s in order:
            needed, added = self.effect(left, s)
            out.append(live + needed)
            live += added
            left &= ~self.bit[s]
        return out

    def peak(self, order: Sequence[int]) -> int:
        """The most bytes that are alive at once in this order."""
        return max(self.alive(order), default=0)
