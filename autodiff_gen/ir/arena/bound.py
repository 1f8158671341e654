"""A lower bound for all orders of steps: the bytes that are alive at each step in every order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .problem import Steps


def surely_alive(steps: Steps, needs: Sequence[int]) -> list[int]:
    """The bytes that are alive at each step, whatever the order. A buffer is alive at the step that makes it, and at
    each step that depends on that step and on which a reader of the buffer depends. needs[s]: the steps that s depends
    on, itself among them, a bit each.
    """
    count = len(needs)
    if not count:
        return []
    width = (count + 7) // 8
    depends = np.array([list(n.to_bytes(width, "little")) for n in needs], np.uint8)
    above = np.unpackbits(depends, axis=1, bitorder="little")[:, :count].astype(
        bool
    )  # [s, steps that s depends on]
    readers: dict[int, list[int]] = {}
    for s in range(count):
        for b in steps.reads[s]:
            readers.setdefault(b, []).append(s)
    alive = np.array(steps.scratch, np.int64)
    for s in range(count):
        for b in steps.makes[s]:
            if b in readers:
                alive[above[:, s] & above[readers[b]].any(0)] += steps.sizes[b]
            else:
                alive[s] += steps.sizes[b]
    for s in range(count):  # a result may have the memory of an operand
        alive[s] -= sum(steps.sizes[b] for b, operands in steps.reuses[s] if operands)
    found: list[int] = alive.tolist()
    return found
