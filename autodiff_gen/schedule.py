"""The order of the steps: the one with the lowest peak of live bytes that a beam search finds (exact on small graphs).

Which steps are done decides what is live, so states with the same done set are compared and only the best is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

BEAM = 256


def order_steps(
    before: Sequence[Sequence[int]],
    makes: Sequence[Mapping[int, int]],
    reads: Sequence[Sequence[int]],
    scratch: Sequence[int],
) -> list[int]:
    """An order of steps 0..S-1.

    before[s]: the steps that must come earlier; makes[s]: buffer -> bytes that step s produces; reads[s]: the buffers that it reads;
    scratch[s]: bytes that it needs for itself. Ties keep the given order, so the result is a function of the input.
    """
    count = len(before)
    readers: dict[int, int] = {}
    for s in range(count):
        for b in reads[s]:
            readers[b] = readers.get(b, 0) | 1 << s
    needs = [sum(1 << p for p in set(before[s])) for s in range(count)]
    size = {b: n for s in range(count) for b, n in makes[s].items()}
    # done set -> (peak, live bytes, order)
    front: dict[int, tuple[int, int, tuple[int, ...]]] = {0: (0, 0, ())}
    for _ in range(count):
        after: dict[int, tuple[int, int, tuple[int, ...]]] = {}
        for done, (peak, live, order) in front.items():
            for s in range(count):
                if done >> s & 1 or needs[s] & ~done:
                    continue
                new = done | 1 << s
                during = live + sum(makes[s].values()) + scratch[s]
                dead = sum(size[b] for b in set(reads[s]) if b in size and not readers[b] & ~new)
                dead += sum(n for b, n in makes[s].items() if b not in readers)
                candidate = (max(peak, during), live + sum(makes[s].values()) - dead, (*order, s))
                if new not in after or candidate < after[new]:
                    after[new] = candidate
        best = sorted(after.items(), key=lambda item: item[1])[:BEAM]
        front = dict(best)
    ((_, _, order),) = front.values()
    return list(order)
