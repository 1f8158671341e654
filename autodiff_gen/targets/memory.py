"""The memories of a board: regions, and the flash for checkpoints. Stdlib only."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import BoardError
from .schema import KINDS

MOST_FURTHER = 3  # regions of RAM for which the linker script has a section


@dataclass(frozen=True)
class MemoryRegion:
    """A memory region: its `origin` and size in `bytes`; code and constants go to 'flash', variables to 'ram'.
    cost: of an access, relative to other regions; None where the file gives none. states: names of parameters and
    moments that trainers have here, "*" for any part of a name."""

    name: str
    kind: str
    origin: int
    bytes: int
    cost: float | None = None
    states: tuple[str, ...] = ()

    @property
    def end(self) -> int:
        return self.origin + self.bytes


@dataclass(frozen=True)
class Space:
    """The bytes that a trainer may use in a region of RAM, the relative cost of an access, and the names of states that
    are placed there."""

    region: str
    bytes: int
    cost: float = 1.0
    states: tuple[str, ...] = ()


@dataclass(frozen=True)
class CheckpointStore:
    """Flash for checkpoints, after the program: `slots` erase units of `slot_bytes`, starting at `origin`."""

    origin: int
    slots: int
    slot_bytes: int

    @property
    def end(self) -> int:
        return self.origin + self.slots * self.slot_bytes


def read_regions(section: Mapping[str, Any], path: Path) -> dict[str, MemoryRegion]:
    """The regions of a section [memory], by name. Raises BoardError."""
    regions = {}
    for name, part in section.items():
        for key in ("origin", "bytes"):
            if key not in part:
                raise BoardError(f"{path}: memory.{name}.{key} is missing")
        kind, states = part.get("kind", "ram"), tuple(part.get("states", ()))
        regions[name] = MemoryRegion(name, kind, part["origin"], part["bytes"], part.get("cost"), states)
        if regions[name].end > 1 << 32:
            raise BoardError(
                f"{path}: memory.{name} ends above 4 GiB: origin + bytes = {regions[name].end:#x}"
            )
    return regions


def _own_store(store: CheckpointStore, flash: MemoryRegion) -> str:
    origin = flash.end - store.slots * store.slot_bytes
    if origin > flash.origin:
        return f"give it a [store] with origin = {origin:#x}, if erase units begin there"
    return "inherit the file of the core, such as arch/cortex_m4f, and state memory and support"


def main_region(memory: Mapping[str, MemoryRegion], kind: str) -> MemoryRegion | None:
    """The first region of a kind in the file."""
    return next((r for r in memory.values() if r.kind == kind), None)


def further_regions(memory: Mapping[str, MemoryRegion]) -> list[MemoryRegion]:
    """The regions of RAM after the main one that trainers may use: those with a cost."""
    main = main_region(memory, "ram")
    return [r for r in memory.values() if r.kind == "ram" and r is not main and r.cost is not None]


def check_memory(
    memory: Mapping[str, MemoryRegion], store: CheckpointStore | None, stack_bytes: int, path: Path
) -> None:
    """Raise BoardError unless the regions are disjoint, and the stack and the store are inside theirs."""
    for kind in KINDS:
        if main_region(memory, kind) is None:
            raise BoardError(f"{path}: memory has no region of kind {kind!r}: add [memory.<name>]")
    regions = sorted(memory.values(), key=lambda r: r.origin)
    for low, high in itertools.pairwise(regions):
        if low.end > high.origin:
            raise BoardError(f"{path}: memory.{low.name} and memory.{high.name} overlap")
    ram = main_region(memory, "ram")
    assert ram is not None
    if ram.origin % 32 or ram.bytes % 32:
        raise BoardError(f"{path}: memory.{ram.name}: origin and bytes must be multiples of 32 (MPU guards)")
    further = further_regions(memory)
    for r in regions:
        if r.states and r is not ram and r not in further:
            raise BoardError(
                f"{path}: memory.{r.name}.states: trainers do not use the region; they use the first of RAM, and "
                "further ones with a cost"
            )
    if len(further) > MOST_FURTHER:
        raise BoardError(
            f"{path}: {len(further)} regions of RAM after the first have a cost, at most {MOST_FURTHER} may: remove "
            f"the cost of memory.{further[-1].name}"
        )
    for r in further:
        if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", r.name):
            raise BoardError(
                f"{path}: memory.{r.name}: with a cost, the name must be one of C: letters, digits and _"
            )
        if r.origin % 8 or r.bytes % 8:
            raise BoardError(f"{path}: memory.{r.name}: origin and bytes must be multiples of 8")
    flash = main_region(memory, "flash")
    assert flash is not None
    if store is not None and not flash.origin < store.origin <= store.end <= flash.end:
        raise BoardError(
            f"{path}: [store], {store.origin:#x} to {store.end:#x}, must be inside memory.{flash.name} "
            f"({flash.origin:#x} to {flash.end:#x}) and after its start, where the program is; if the file inherits "
            f"it: {_own_store(store, flash)}"
        )
    if stack_bytes % 8:
        raise BoardError(f"{path}: stack_bytes must be a multiple of 8, got {stack_bytes}")
    if stack_bytes >= ram.bytes:
        raise BoardError(f"{path}: stack_bytes is {stack_bytes}, but memory.{ram.name} has {ram.bytes} bytes")
