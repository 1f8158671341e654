"""Placement: buffers with lifetimes get offsets in one arena; the peak is compared with the lower bound of
the order.
"""

from __future__ import annotations

import random
from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

EFFORT = 20_000  # buffers that seeded shuffles may place, all tries together


@dataclass(frozen=True)
class Buffer:
    """`bytes` needed from step `start` to step `end`, both included, at a multiple of `alignment`, which is that of all
    buffers. Equal ones are distinct by `key`."""

    key: int
    bytes: int
    start: int
    end: int
    alignment: int = 4

    @property
    def size(self) -> int:
        return (self.bytes + self.alignment - 1) // self.alignment * self.alignment

    def meets(self, other: Buffer) -> bool:
        """Whether both are alive at some step."""
        return self.start <= other.end and other.start <= self.end


@dataclass(frozen=True)
class Plan:
    """Offsets by key, the arena's size, and the least that any placement of this order could reach."""

    offsets: dict[int, int]
    peak: int
    bound: int


def lower_bound(buffers: Sequence[Buffer]) -> int:
    """The most aligned bytes alive at one step: no placement of this order and granularity can do with less."""
    changes: dict[int, int] = {}
    for b in buffers:
        changes[b.start] = changes.get(b.start, 0) + b.size
        changes[b.end + 1] = changes.get(b.end + 1, 0) - b.size
    return max(accumulate(change for _, change in sorted(changes.items())), default=0)


def _first_fit(buffers: Sequence[Buffer]) -> tuple[dict[int, int], int]:
    """Each buffer, one after the other, at the lowest offset where it overlaps none that is alive with it."""
    placed: list[tuple[int, int, int, int]] = []  # (offset, end of its bytes, start, end), by offset
    offsets: dict[int, int] = {}
    for b in buffers:
        offset, size, start, end = 0, b.size, b.start, b.end
        for at, top, first, last in placed:
            if first <= end and start <= last:
                if offset + size <= at:
                    break
                if top > offset:
                    offset = top
        offsets[b.key] = offset
        insort(placed, (offset, offset + size, start, end))
    return offsets, max((top for _, top, _, _ in placed), default=0)


def place(buffers: Sequence[Buffer]) -> Plan:
    """The best of several first-fit orders, then of seeded shuffles until the bound is met or EFFORT is spent."""
    bound = lower_bound(buffers)
    orders: list[Callable[[Buffer], tuple[int, ...]]] = [
        lambda b: (-b.size, b.start, b.key),
        lambda b: (b.start, -b.size, b.key),
        lambda b: (b.start - b.end, -b.size, b.key),
        lambda b: (-b.size * (b.end - b.start + 1), b.key),
    ]
    best = _first_fit(sorted(buffers, key=orders[0]))
    for key in orders[1:]:
        if best[1] > bound:
            best = min(best, _first_fit(sorted(buffers, key=key)), key=lambda c: c[1])
    shuffled, generator = list(buffers), random.Random(1)
    for _ in range(EFFORT // max(len(buffers), 1)):
        if best[1] == bound:
            break
        generator.shuffle(shuffled)
        best = min(best, _first_fit(shuffled), key=lambda c: c[1])
    return Plan(best[0], best[1], bound)
