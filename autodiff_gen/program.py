"""The program: everything that the emitter, the host runner and the reports need to know of a compiled model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .dtypes import Type


@dataclass(frozen=True)
class Arg:
    """One argument of an entry function, in C's order. Scalars (shape ()) that come in are passed by value."""

    name: str  # as the model calls it
    c_name: str
    type: Type
    role: str  # "input", "target", "param" (a parameter given to a plain function), "output"
    classes: int | None = None  # integer inputs: values must lie in [0, classes)

    @property
    def by_value(self) -> bool:
        return self.role != "output" and self.type.shape == ()


@dataclass(frozen=True)
class Slot:
    """One state in the trainer's struct: a parameter, a moment, a counter."""

    name: str  # as state_dict calls it
    c_name: str
    type: Type
    init: Any
    trainable: bool


@dataclass(frozen=True)
class Entry:
    """One generated function: `c_name(t, inputs.., [n], outputs..)`."""

    name: str
    c_name: str
    args: tuple[Arg, ...]
    takes_n: bool
    body: Any = field(repr=False, default=None)


@dataclass(frozen=True)
class Program:
    """A compiled model (`struct` is `<m>_trainer`) or plain function (`<f>_work`)."""

    name: str
    struct: str
    batch: int
    slots: tuple[Slot, ...]
    entries: tuple[Entry, ...]
    arena_words: int  # float arena[arena_words]
    int_words: int  # int32_t int_arena[int_words], absent when 0
    graph_id: int
    default_lr: float | None = None
    kernels: tuple[Any, ...] = ()  # backends.Kernel, those that are called

    @property
    def struct_bytes(self) -> int:
        """sizeof the struct; every member is 4-byte aligned and sized."""
        return sum((s.type.bytes + 3) // 4 * 4 for s in self.slots) + 4 * (max(self.arena_words, 1) + self.int_words)
