"""How the elements of a state are stored, where it is not as the logical (PyTorch) shape says: in another order, or in
part."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .quantization import Quantization


@dataclass(frozen=True)
class Storage:
    """stored = logical.reshape(split).permute(dims).reshape(shape).

    `split` cuts the axes of the `logical` shape, `dims` is the order in which the pieces are stored, `shape` the shape
    in generated code.
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

    @property
    def of_zeros(self) -> Storage:
        """The storage of the parameter's optimizer state."""
        return self

    def __str__(self) -> str:
        return f"{list(self.split)} in the order {list(self.dims)}"


@dataclass(frozen=True, eq=False)
class PartialStorage:
    """The elements `index` along an axis of an array that is stored as `whole` says.

    rest: all elements as they are stored; None where elements that are not stored are 0. quantization: of the logical
    type, if it has one.
    """

    whole: Storage | None
    shape: tuple[int, ...]  # of the whole, as it is stored
    axis: int
    index: tuple[int, ...]
    rest: Any = None
    quantization: Quantization | None = None
    in_order = False

    @property
    def logical(self) -> tuple[int, ...]:
        return self.shape if self.whole is None else self.whole.logical

    def stored(self, array: Any) -> Any:
        """The part of an array of the logical shape."""
        return np.ascontiguousarray(np.take(self._stored(array), self.index, self.axis))

    def restored(self, array: Any) -> Any:
        """An array of the logical shape with this part."""
        stored = np.zeros(self.shape, array.dtype) if self.rest is None else self.rest.astype(array.dtype)
        np.moveaxis(stored, self.axis, 0)[list(self.index)] = np.moveaxis(array, self.axis, 0)
        return stored if self.whole is None else self.whole.restored(stored)

    def has_the_rest_of(self, array: Any) -> bool:
        """Whether `restored` would give the elements of an array that are not stored."""
        return np.array_equal(self.restored(self.stored(array)), array)

    @property
    def of_zeros(self) -> PartialStorage:
        """The storage of the parameter's optimizer state, which has nothing for the rest."""
        return replace(self, rest=None, quantization=None)

    def _stored(self, array: Any) -> Any:
        return np.asarray(array) if self.whole is None else self.whole.stored(array)

    def __str__(self) -> str:
        order = "" if self.whole is None else f" of {self.whole}"
        return f"elements {list(self.index)} along axis {self.axis}{order}"
