"""Sums over several axes in two steps: the inner loops have an accumulator, which is added to the sum's accumulator.

    for i in 48:                      for i in 48:
        for j in 48:                      part = 0
            sum += x[i, j]      ->        for j in 48: part += x[i, j]
                                          sum += part

The longer one of two loops is the inner one, unless the shorter one reads adjacent elements: 5 sums of 25 terms take
less time than 25 sums of 5 terms.

The rounding error of n terms, added up one by one, grows with the root of n: two steps of 48 terms have the error of 96
terms, not of 2304. Networks amplify the error from layer to layer. MobileNetV1 is normalised 27 times: without partial
sums, its gradients would have ten times the error of PyTorch's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...ir.types import Size, planned


def inner_loops(extents: Sequence[Size]) -> int:
    """How many of the innermost loops of a sum compute a partial sum; 0 where there is one loop. The two steps are as
    equally long as the extents allow. extents: outermost first."""
    sizes = planned(tuple(extents))
    if len(sizes) < 2:
        return 0
    return min(range(1, len(sizes)), key=lambda k: max(math.prod(sizes[:-k]), math.prod(sizes[-k:])))


def is_longer_outside(extents: Sequence[Size]) -> bool:
    """Whether a sum has two loops of known extents and the outer one is longer."""
    match tuple(extents):
        case (int(outer), int(inner)):
            return outer > inner
    return False
