"""The order in which a state's elements are stored, where it is not that of its logical (PyTorch) shape."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Storage:
    """stored = logical.reshape(split).permute(dims).reshape(shape).

    `split` cuts the axes of the `logical` shape, `dims` is the order in which the pieces are stored, `shape` what
    generated code sees.
    """

    logical: tuple[int, ...]
    split: tuple[int, ...]
    dims: tuple[int, ...]
    shape: tuple[int, ...]

    def stored(self, array: Any) -> Any:
        """An array of the logical shape as it is stored."""
        return np.ascontiguousarray(np.transpose(np.reshape(array, self.split), self.dims)).reshape(
            self.shape
        )

    def restored(self, array: Any) -> Any:
        """The inverse of `stored`: an array of the logical shape."""
        pieces = np.reshape(array, [extent for extent, _ in self.loops])
        return np.ascontiguousarray(np.transpose(pieces, np.argsort(self.dims))).reshape(self.logical)

    @property
    def in_order(self) -> bool:
        """Whether the elements are stored in their logical order, and only the shape differs."""
        return self.dims == tuple(range(len(self.dims)))

    @property
    def loops(self) -> list[tuple[int, int]]:
        """For each stored axis, outermost first, its extent and the step of the logical index along it."""
        steps = [math.prod(self.split[i + 1 :]) for i in range(len(self.split))]
        return [(self.split[d], steps[d]) for d in self.dims]

    def __str__(self) -> str:
        return f"{list(self.split)} in the order {list(self.dims)}"
