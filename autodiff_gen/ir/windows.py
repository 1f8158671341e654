"""The windows of an image that an op reads."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .types import Size


@dataclass(frozen=True)
class CutWindows:
    """The cost, for each image, of windows that the border of the image cuts. calls: how often kernels call a function
    for vectors, as they compute these windows one by one; terms: how many more products of two numbers there are
    instead, if the border is in memory."""

    calls: int
    terms: int


@dataclass(frozen=True)
class Windows:
    """Windows of so many rows and columns of an image, operand `image`. The op has the attribute `padding`, the extent
    of the border: top, bottom, left, right; of products also `stride` and `dilation`.

    border: the number that elements of the border count as, None where they do not count. -inf: the op takes the
    largest element of each window.
    filters: how many filters a product multiplies whole windows by; 0 of other ops.
    weights: the operands w[filters, rows, columns, channels] of a product; is_gradient: the result has this shape too,
    as the gradient of weights has.
    cut: the windows that the border cuts; None of ops whose kernels compute them with the others.
    """

    image: int
    kernel: tuple[int, int]
    border: float | None = None
    filters: Size = 0
    weights: tuple[int, ...] = ()
    is_gradient: bool = False
    cut: CutWindows | None = None

    @property
    def takes_largest(self) -> bool:
        return self.border == -math.inf
