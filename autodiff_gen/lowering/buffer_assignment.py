"""Placement: buffers with lifetimes get offsets in one arena; the peak is compared with the lower bound of
the order.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

ALIGNMENT = 4
EFFORT = 20_000  # buffers that seeded shuffles may place, all tries together


@dataclass(frozen=True)
class Buffer:
    """`bytes` needed from step `start` to step `end`, both included. Equal buffers are distinct by `key`."""

    key: int
    bytes: int
    start: int
    end: int

    @property
    def size(self) -> int:
        return (self.bytes + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT

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
    steps = {b.start for b in buffers}
    return max((sum(b.size for b in buffers if b.start <= s <= b.end) for s in steps), default=0)


def _first_fit(buffers: Sequence[Buffer]) -> tuple[dict[int, int], int]:
    """Each buffer in turn at the lowest offset where it overlaps none that is alive with it."""
    placed: list[tuple[Buffer, int]] = []
    for b in buffers:
        offset = 0
        for other, at in sorted((p for p in placed if p[0].meets(b)), key=lambda p: p[1]):
            if offset + b.size <= at:
                break
            offset = max(offset, at + other.size)
        placed.append((b, offset))
    return {b.key: at for b, at in placed}, max((at + b.size for b, at in placed), default=0)


def place(buffers: Sequence[Buffer]) -> Plan:
    """The best of several first-fit orders, then of seeded shuffles until the bound is met or EFFORT is spent."""
    bound = lower_bound(buffers)
    orders: list[Callable[[Buffer], tuple[int, ...]]] = [
        lambda b: (-b.size, b.start, b.key),
        lambda b: (b.start, -b.size, b.key),
        lambda b: (b.start - b.end, -b.size, b.key),
        lambda b: (-b.size * (b.end - b.start + 1), b.key),
    ]
    candidates = [_first_fit(sorted(buffers, key=key)) for key in orders]
    best = min(candidates, key=lambda c: c[1])
    shuffled, generator = list(buffers), random.Random(1)
    for _ in range(EFFORT // max(len(buffers), 1)):
        if best[1] == bound:
            break
        generator.shuffle(shuffled)
        best = min(best, _first_fit(shuffled), key=lambda c: c[1])
    return Plan(best[0], best[1], bound)
