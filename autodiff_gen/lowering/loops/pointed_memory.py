"""Memory that loops read and write, and the places of elements in it: known from the plan before any C is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from ...ir.types import DType, f32

CALLER = (
    "caller"  # the root of arrays whose place only the caller knows; none is part of the program's own memory
)
LOCAL = "local "  # and a name: the root of a local array

Steps: TypeAlias = Mapping[str, int]  # of an index along variables, and under "" where it begins


@dataclass(frozen=True)
class PointedMemory:
    """The memory that a pointer points to. root: an arena, a state, a local array or CALLER; first, end: the bytes of
    the root that its elements are in, None if unknown; origin: its first element, in bytes from the beginning of
    `anchor`, the root or a pointer that moves; element: the bytes of an element."""

    root: str
    anchor: str
    origin: int
    element: int
    first: int | None = None
    end: int | None = None
    is_float: bool = False

    @property
    def is_local(self) -> bool:
        """Whether it is a local array, which compilers keep in registers."""
        return self.root.startswith(LOCAL)

    def is_apart_from(self, other: PointedMemory) -> bool:
        if self.root != other.root:
            return True
        if self.first is None or self.end is None or other.first is None or other.end is None:
            return False
        return self.end <= other.first or other.end <= self.first

    def of_type(self, dtype: DType) -> PointedMemory:
        """The same memory, with elements of another type."""
        return replace(self, element=dtype.size, is_float=dtype is f32)

    def moved(self, name: str, elements: int, is_moving: bool) -> PointedMemory:
        """The memory of the pointer `name`, so many elements further on; is_moving: the pointer moves with a loop
        too."""
        if is_moving:
            return replace(self, anchor=name, origin=0)
        return replace(self, origin=self.origin + elements * self.element)

    def at(self, steps: Steps | None) -> Access:
        """The element at an index."""
        if steps is None:
            return Access(self, None, 0)
        moved = {v: k * self.element for v, k in steps.items() if v}
        return Access(self, moved, self.origin + steps.get("", 0) * self.element)


def local_array(name: str, element: int = 4, *, is_float: bool) -> PointedMemory:
    return PointedMemory(f"{LOCAL}{name}", name, 0, element, is_float=is_float)


@dataclass(frozen=True)
class Access:
    """An element that a loop reads or writes: its steps along variables, in bytes, None where its place is not linear
    in them; offset: the constant part of its place, in bytes from the anchor of its memory."""

    memory: PointedMemory
    steps: Mapping[str, int] | None
    offset: int
    is_written: bool = False

    def step(self, variable: str) -> int | None:
        return None if self.steps is None else self.steps.get(variable, 0)

    def distance(self, other: Access) -> int | None:
        """The bytes from another element to this one in one iteration of all loops; None where that is not known."""
        if self.steps is None or other.steps is None or self.memory.anchor != other.memory.anchor:
            return None
        if any(self.step(v) != other.step(v) for v in {**self.steps, **other.steps}):
            return None
        return self.offset - other.offset

    def may_be(self, other: Access) -> bool:
        """Whether both may be the same bytes in one iteration."""
        between = self.distance(other)
        if between is None or self.memory.element != other.memory.element:
            return not self.memory.is_apart_from(other.memory)
        return abs(between) < self.memory.element

    def never_meets(self, other: Access, variable: str, count: int) -> bool:
        """Whether the two never touch the same byte in different iterations among `count` iterations over
        `variable`."""
        between, size = self.distance(other), self.memory.element
        step = abs(self.step(variable) or 0)
        if between is None or step < size or size != other.memory.element:
            return self.memory.is_apart_from(other.memory)
        between = abs(between)
        return between == 0 or between >= step * count or between % step >= size
