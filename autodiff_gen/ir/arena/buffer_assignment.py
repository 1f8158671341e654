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
from typing import TypeAlias

EFFORT = 40_000  # buffers that each search for a better order may place, all tries together
SMALL = 256  # a buffer is small if the arena has room for more of its size


_Offsets: TypeAlias = tuple[dict[int, int], int]  # offsets by key, and the peak


@dataclass(frozen=True)
class ArenaBuffer:
    """`bytes` needed from step `start` to step `end`, both included, at a multiple of `alignment`, which all buffers
    share; `later`: (bytes, start, end) of fewer bytes that are needed afterwards at the same offset. Equal ones are
    distinct by `key`."""

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

    def meets(self, other: ArenaBuffer) -> bool:
        """Whether both are alive at some step."""
        return self.start <= other.parts[-1][2] and other.start <= self.parts[-1][2]


@dataclass(frozen=True)
class ArenaPlan:
    """Offsets by key, the arena's size, and the least that any placement of this order could reach."""

    offsets: dict[int, int]
    peak: int
    bound: int


def lower_bound(buffers: Sequence[ArenaBuffer]) -> int:
    """The most aligned bytes alive at one step: no placement of this order and granularity can do with less."""
    changes: dict[int, int] = {}
    for size, start, end in (part for b in buffers for part in b.parts):
        changes[start] = changes.get(start, 0) + size
        changes[end + 1] = changes.get(end + 1, 0) - size
    return max(accumulate(change for _, change in sorted(changes.items())), default=0)


def _first_fit(buffers: Sequence[ArenaBuffer]) -> _Offsets:
    """Each buffer, one after the other, at the lowest offset where it overlaps none that is alive with it: offsets, and
    the peak."""
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
    return offsets, max((top for _, top, _, _ in placed), default=0)


_ORDERS: tuple[Callable[[ArenaBuffer], tuple[int, ...]], ...] = (
    lambda b: (-b.size, b.start, b.key),
    lambda b: (b.start, -b.size, b.key),
    lambda b: (b.start - b.end, -b.size, b.key),
    lambda b: (-b.size * (b.end - b.start + 1), b.key),
    lambda b: (-b.size.bit_length(), b.start - b.end, b.key),
)


def place(buffers: Sequence[ArenaBuffer]) -> ArenaPlan:
    """The best of several first-fit orders. If none meets the bound, the orders are improved: first the order of the
    large buffers, whose gaps the small ones fill, then the order of all buffers."""
    bound = lower_bound(buffers)
    placed: dict[tuple[int, ...], _Offsets] = {}

    def first_fit(order: Sequence[ArenaBuffer]) -> _Offsets:
        """Like _first_fit, but an order that was placed before is not placed again."""
        keys = tuple([b.key for b in order])
        if keys not in placed:
            placed[keys] = _first_fit(order)
        return placed[keys]

    best = first_fit(sorted(buffers, key=_ORDERS[0]))
    for key in _ORDERS[1:]:
        if best[1] > bound:
            best = _better(best, first_fit(sorted(buffers, key=key)))
    large = [b for b in buffers if b.size * SMALL >= bound]
    small = sorted((b for b in buffers if b.size * SMALL < bound), key=_ORDERS[0])
    for moved, rest in ((large, small), (buffers, [])):
        for key in _ORDERS:
            if best[1] > bound:
                found = _improved(sorted(moved, key=key), rest, bound, EFFORT // len(_ORDERS), first_fit)
                best = _better(best, found)
    return ArenaPlan(*best, bound)


def _better(best: _Offsets | None, found: _Offsets) -> _Offsets:
    return found if best is None or found[1] < best[1] else best


def _improved(
    order: list[ArenaBuffer],
    rest: Sequence[ArenaBuffer],
    bound: int,
    effort: int,
    first_fit: Callable[[Sequence[ArenaBuffer]], _Offsets],
) -> _Offsets:
    """The best of changed orders, each followed by the rest; all orders together place at most `effort` buffers.
    Buffers that exceed the bound come earlier the next time (squeaky wheel optimization, Joslin and Clements 1999)."""
    generator = random.Random(1)
    best: _Offsets | None = None
    while best is None or (best[1] > bound and effort > 0):
        offsets, peak = first_fit(order)
        effort -= len(order)
        if best is None or peak < best[1]:
            best = _better(best, first_fit([*order, *rest]))
            effort -= len(order) + len(rest)
        if peak <= bound:
            break
        ranks = [
            k - (generator.random() * len(order) / 2 if offsets[b.key] + b.size > bound else 0)
            for k, b in enumerate(order)
        ]
        order = [order[k] for k in sorted(range(len(order)), key=ranks.__getitem__)]
    return best
