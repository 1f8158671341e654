"""Placement: buffers with lifetimes get offsets in one arena; the peak is compared with the lower bound of
the order.
"""

from __future__ import annotations

import random
from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

EFFORT = 40_000  # buffers that the search for a better order may place, all tries together


@dataclass(frozen=True)
class Buffer:
    """`bytes` needed from step `start` to step `end`, both included, at a multiple of `alignment`, which is that of all
    buffers; and `later` fewer bytes at the same offset, each (bytes, start, end). Equal ones are distinct by `key`."""

    key: int
    bytes: int
    start: int
    end: int
    alignment: int = 4
    later: tuple[tuple[int, int, int], ...] = ()

    @cached_property
    def size(self) -> int:
        return self.parts[0][0]

    @cached_property
    def parts(self) -> tuple[tuple[int, int, int], ...]:
        """Aligned bytes, with the first and the last step at which so many are needed."""
        unit = self.alignment
        every = ((self.bytes, self.start, self.end), *self.later)
        return tuple(((size + unit - 1) // unit * unit, start, end) for size, start, end in every)

    def meets(self, other: Buffer) -> bool:
        """Whether both are alive at some step."""
        return self.start <= other.parts[-1][2] and other.start <= self.parts[-1][2]


@dataclass(frozen=True)
class Plan:
    """Offsets by key, the arena's size, and the least that any placement of this order could reach."""

    offsets: dict[int, int]
    peak: int
    bound: int


def lower_bound(buffers: Sequence[Buffer]) -> int:
    """The most aligned bytes alive at one step: no placement of this order and granularity can do with less."""
    changes: dict[int, int] = {}
    for size, start, end in (part for b in buffers for part in b.parts):
        changes[start] = changes.get(start, 0) + size
        changes[end + 1] = changes.get(end + 1, 0) - size
    return max(accumulate(change for _, change in sorted(changes.items())), default=0)


def _first_fit(buffers: Sequence[Buffer], limit: int | None = None) -> tuple[dict[int, int], int]:
    """Each buffer, one after the other, at the lowest offset where it overlaps none that is alive with it: offsets, and
    the peak. Placement ends at the first that exceeds the limit."""
    placed: list[tuple[int, int, int, int]] = []  # (offset, end of its bytes, start, end), by offset
    offsets: dict[int, int] = {}
    for b in buffers:
        offset, tried = 0, -1
        while tried < offset:
            tried = offset
            for size, start, end in b.parts:
                for at, top, first, last in placed:
                    if first <= end and start <= last:
                        if offset + size <= at:
                            break
                        if top > offset:
                            offset = top
            if not b.later:
                break
        offsets[b.key] = offset
        for size, start, end in b.parts:
            insort(placed, (offset, offset + size, start, end))
        if limit is not None and offset + b.size > limit:
            break
    return offsets, max((top for _, top, _, _ in placed), default=0)


def place(buffers: Sequence[Buffer]) -> Plan:
    """The best of several first-fit orders, each improved until the bound is met or its part of EFFORT is spent."""
    bound = lower_bound(buffers)
    orders: list[Callable[[Buffer], tuple[int, ...]]] = [
        lambda b: (-b.size, b.start, b.key),
        lambda b: (b.start, -b.size, b.key),
        lambda b: (b.start - b.end, -b.size, b.key),
        lambda b: (-b.size * (b.end - b.start + 1), b.key),
        lambda b: (-b.size.bit_length(), b.start - b.end, b.key),
    ]
    tried = []
    for key in orders:
        order = sorted(buffers, key=key)
        tried.append((order, *_first_fit(order)))
        if tried[-1][2] == bound:
            return Plan(*tried[-1][1:], bound)
    best: tuple[dict[int, int], int] | None = None
    for found in sorted(tried, key=lambda found: found[2]):
        improved = _climbed(*found, bound, EFFORT // len(orders))
        if best is None or improved[1] < best[1]:
            best = improved
        if best[1] == bound:
            break
    assert best is not None
    return Plan(*best, bound)


def _climbed(
    order: list[Buffer], offsets: dict[int, int], peak: int, bound: int, effort: int
) -> tuple[dict[int, int], int]:
    """What first fit makes of changed orders, each no worse than the one before: a buffer that exceeds the bound goes
    before one of those that are alive with it, or that one goes before another."""
    generator = random.Random(1)
    excess = _excess(order, offsets, bound)
    for _ in range(effort // max(len(order), 1)):
        if peak == bound:
            break
        top = generator.choice([b for b in order if offsets[b.key] + b.size > bound])
        under = [b for b in order if b is not top and b.meets(top)]
        moved = top if generator.random() < 0.5 else generator.choice(under)
        others = [b for b in order if b is not moved and b.meets(moved)]
        target = generator.choice(others)
        new = [b for b in order if b is not moved]
        new.insert(new.index(target), moved)
        found, height = _first_fit(new, peak)
        if height <= peak:
            more = _excess(new, found, bound)
            if height < peak or more <= excess:
                order, offsets, peak, excess = new, found, height, more
    return offsets, peak


def _excess(buffers: Sequence[Buffer], offsets: dict[int, int], bound: int) -> int:
    """The bytes by which buffers exceed the bound, all together."""
    return sum(max(0, offsets[b.key] + b.size - bound) for b in buffers)
