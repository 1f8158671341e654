"""Where the elements of an array are stored: offset and strides over the elements of a base."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from .types import Shape, planned


@dataclass(frozen=True)
class Strided:
    """Element `idx` is stored at `offset + sum(idx * strides)`, counted in elements of the base's dtype; strides
    are planned for the largest batch, so they are plain integers. An axis of extent 1 may carry any
    stride.
    """

    shape: Shape
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def dense(self) -> bool:
        """Row-major without gaps, from the first element on."""
        if self.offset:
            return False
        strides = row_major(self.shape)
        return self.strides == strides or all(
            a == b or d == 1 for a, b, d in zip(self.strides, strides, self.shape, strict=True)
        )

    def window(self, shape: Shape, starts: Sequence[int], steps: Sequence[int]) -> Strided:
        """The elements at starts + i * steps."""
        offset = self.offset + sum(a * s for a, s in zip(starts, self.strides, strict=True))
        return Strided(shape, tuple(k * s for k, s in zip(steps, self.strides, strict=True)), offset)

    def windows(self, shape: Shape, stride: Sequence[int], dilation: Sequence[int]) -> Strided:
        """Sliding windows [n, p, q, i, j, c] of an image [n, h, w, c]: p and q count windows, i and j their
        elements."""
        image, row, column, channel = self.strides
        begins = row * stride[0], column * stride[1]
        return Strided(shape, (image, *begins, row * dilation[0], column * dilation[1], channel), self.offset)


@cache
def row_major(shape: Shape) -> tuple[int, ...]:
    strides: list[int] = []
    step = 1
    for d in reversed(planned(shape)):
        strides.append(step)
        step *= d
    return tuple(reversed(strides))


@cache
def dense(shape: Shape) -> Strided:
    return Strided(shape, row_major(shape))
