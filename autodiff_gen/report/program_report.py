"""The record of a whole program for the reports: its sizes, states and entries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..targets.board import Target
from .data import EntryRecord


@dataclass(frozen=True)
class StateRecord:
    """A member of the struct that keeps its value from call to call."""

    name: str
    c_name: str
    type: str
    bytes: int
    role: str
    stored: str  # how, where the order in memory is not the order of the logical shape
    region: str = ""  # of memory, where there are several


@dataclass(frozen=True)
class RegionRecord:
    """The memory of a program in one of several regions: a struct, and in the main region the handle with pointers to
    all structs. `ram`: its budget."""

    name: str
    state_bytes: int
    struct_bytes: int
    handle_bytes: int
    ram: int

    @property
    def arena_bytes(self) -> int:
        """All but the states."""
        return self.bytes - self.state_bytes

    @property
    def bytes(self) -> int:
        return self.struct_bytes + self.handle_bytes


@dataclass(frozen=True)
class CallWork:
    """The cost of a call; None where the board's file lacks a number."""

    instructions: float
    cycles: float | None
    milliseconds: float | None
    millijoules: float | None


def three_digits(x: float) -> str:
    """A number with three digits, or all digits before the point."""
    return f"{x:,.3g}" if x < 999.5 else f"{x:,.0f}"


@dataclass(frozen=True)
class Report:
    """A compiled model on a board; `ram`: the budget of the struct in bytes, None without a limit."""

    name: str
    struct: str
    board: str  # its full name
    board_id: str
    batch: int
    priority: str  # kernel backends, with the board's lists for single kernels
    functions: tuple[str, ...]  # of ag_math.h that a backend replaces
    entries: tuple[EntryRecord, ...]
    states: tuple[StateRecord, ...]
    frozen: Mapping[str, int]  # bytes of parameters that are constants in flash
    parameters: Mapping[str, int]  # elements by layer, of those that are no constants
    constants: Mapping[str, int]  # elements by layer, of frozen parameters and buffers
    state_bytes: int
    struct_bytes: int
    bound_bytes: int
    ram: int | None
    guard_cost: str
    stack: str  # of each entry, in words
    target: Target
    cycles: float  # of an instruction, by the board's cost table; 0 where they are not known
    regions: tuple[RegionRecord, ...] = ()

    def work(self, entry: EntryRecord) -> CallWork:
        """The estimated cost of a call of an entry."""
        return self.work_of(entry.instructions, entry.instructions * self.cycles or None)

    def work_of(self, instructions: float, cycles: float | None) -> CallWork:
        """The cost of so many instructions and cycles; None for cycles that are not known."""
        known = cycles or 0.0
        milliseconds = self.target.milliseconds(known) if known else None
        return CallWork(instructions, cycles, milliseconds, self.target.millijoules(known))

    def assumed(self, counted: bool = False) -> str:
        """The assumptions of the estimates of time and energy, in words; `counted`: the cycles were counted."""
        t, told = self.target, []
        if not self.cycles and not counted:
            return ""
        if not counted:
            told.append(f"{self.cycles:g} cycles an instruction")
        if t.clock_hz is not None:
            told.append(f"{t.clock_hz / 1e6:g} MHz")
        if t.ua_per_mhz:
            told.append(f"{t.ua_per_mhz:g} uA for each MHz at {t.volts:g} V")
        return f"assumed: {', '.join(told)}" if told else ""

    @property
    def arena_bytes(self) -> int:
        return self.struct_bytes - self.state_bytes

    @property
    def memory(self) -> list[tuple[str, int]]:
        """The sizes, as rows."""
        rows = [
            ("parameters and optimizer state", self.state_bytes),
            ("arena, the largest over the entries", self.arena_bytes),
            (f"sizeof({self.struct}){' with its regions' if self.regions else ''}", self.struct_bytes),
            ("lower bound of these schedules", self.bound_bytes),
        ]
        if self.ram is not None:
            free = self.ram - self.struct_bytes
            rows += [("RAM budget", self.ram), ("free" if free >= 0 else "MISSING", abs(free))]
        for r in self.regions:
            free = r.ram - r.bytes
            rows += [(f"{r.name}: states", r.state_bytes), (f"{r.name}: arena", r.arena_bytes)]
            rows += [(f"{r.name}: {'free' if free >= 0 else 'MISSING'} of {r.ram}", abs(free))]
        return rows

    @property
    def live(self) -> list[tuple[str, int]]:
        """Names and bytes of the tensors alive at the peak, states included, largest first."""
        entry = self.largest
        held = [(b.at(entry.peak).name, b.bytes) for b in entry.live(entry.peak)] if entry.steps else []
        return sorted([*held, *((s.name, s.bytes) for s in self.states)], key=lambda x: (-x[1], x[0]))

    @property
    def tensors(self) -> list[tuple[str, str, str, int]]:
        """Name, use, type and bytes of the states and of the values in the arenas, largest first; each once."""
        states = [(s.name, s.role, s.type, s.bytes) for s in self.states]
        values = [
            (t.name, f"{t.use}: {t.layer}" if t.layer else t.use, t.type, t.bytes)
            for e in self.entries
            for b in e.buffers
            for t in b.tensors
        ]
        return sorted(dict.fromkeys([*states, *values]), key=lambda row: -row[3])

    @property
    def largest(self) -> EntryRecord:
        """The entry that determines the arena."""
        return max(self.entries, key=lambda e: e.arena_bytes)
