"""Sums over several axes in two steps: the inner loops have an accumulator, which is added to the accumulator of the
sum.

    for i in 48:                      for i in 48:
        for j in 48:                      part = 0
            sum += x[i, j]      ->        for j in 48: part += x[i, j]
                                          sum += part

Of two loops the longer one is the inner one, unless the shorter one reads adjacent elements: 5 sums of 25 terms take
less time than 25 of 5.

The rounding error of n terms, added up one by one, grows with the root of n: 48 and 48 terms have that of 96, not that
of 2304. Networks amplify it from layer to layer: without this the gradients of MobileNetV1, which is normalised 27
times, would have ten times the error of PyTorch's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...ir.types import Size, planned


def inner_loops(extents: Sequence[Size]) -> int:
    """How many of the loops of a sum, outermost first, have an accumulator of their own; 0 where there is one loop. The
    two steps are as equally long as the extents allow."""
    sizes = planned(tuple(extents))
    if len(sizes) < 2:
        return 0
    return min(range(1, len(sizes)), key=lambda k: max(math.prod(sizes[:-k]), math.prod(sizes[-k:])))


def is_longer_outside(extents: Sequence[Size]) -> bool:
    """Whether a sum has two loops of known extents, of which the outer one is longer."""
    match tuple(extents):
        case (int(outer), int(inner)):
            return outer > inner
    return False
