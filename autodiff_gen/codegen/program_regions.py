"""Regions of memory of a program: the board's regions that it may use, and the contents of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from ..errors import BoardError, PlanError
from ..ir.graph import State
from ..ir.identifiers import Scope, identifier
from ..lowering.arena.memory_regions import assign_regions
from ..targets.board import BoardSpec
from ..targets.memory import Space
from ..targets.schema import near
from .program import Program, RegionStruct, Slot

Ram = int | Mapping[str, int] | None


def spaces_of(board: BoardSpec | None, ram: Ram) -> tuple[Space, ...]:
    """The regions that a program may use, the main one first; none without a limit. ram: bytes of all regions
    together, or by region: regions without a number are not used. Raises BoardError."""
    own = () if board is None else board.spaces
    if isinstance(ram, Mapping):
        if unnamed := next((s for s in own if s.states and s.region not in ram), None):
            raise BoardError(
                f"ram: give {unnamed.region} bytes, as the board has {unnamed.states[0]!r} there"
            )
        return tuple(_space(own, name, size, board) for name, size in _main_first(ram, own))
    total = ram if ram is not None or board is None else board.ram_bytes
    if total is None:
        return ()
    if len(own) < 2:
        return (Space(own[0].region if own else "ram", total),)
    sizes, left = [], total
    for s in own:
        sizes.append(min(s.bytes, left))
        left -= sizes[-1]
    sizes[0] += left  # bytes beyond all regions of the board count as bytes of the main region
    return tuple(replace(s, bytes=size) for s, size in zip(own, sizes, strict=True) if size or s.states)


def budget_of(board: BoardSpec | None, ram: Ram) -> int | None:
    """The bytes of all regions together, None without a limit."""
    spaces = spaces_of(board, ram)
    return sum(s.bytes for s in spaces) if spaces else None


def _main_first(ram: Mapping[str, int], own: Sequence[Space]) -> list[tuple[str, int]]:
    order = [s.region for s in own]
    return sorted(ram.items(), key=lambda item: order.index(item[0]) if item[0] in order else len(order))


def _space(own: Sequence[Space], name: str, size: int, board: BoardSpec | None) -> Space:
    known = {s.region: s for s in own}
    if not known:
        return Space(name, size)
    if name not in known:
        raise BoardError(
            f"ram: board {board.id if board else ''} has no region {name!r} (known: {', '.join(known)})"
        )
    if size > known[name].bytes:
        raise BoardError(f"ram: {name} has {known[name].bytes} bytes for the trainer, not {size}")
    return replace(known[name], bytes=size)


def with_memory_regions(program: Program, spaces: Sequence[Space]) -> Program:
    """The program with its states and arenas in regions. It is unchanged for functions, for a single region, and if
    nothing would be outside of the main region: all fits there, no other region is cheaper to access, and the board
    gives no state a region."""
    if len(spaces) < 2 or not program.is_model:
        return program
    given = _given(program, spaces)
    fits = program.struct_bytes <= spaces[0].bytes
    if not any(given.values()) and fits and spaces[0].cost == min(s.cost for s in spaces):
        return program
    handle = 4 * (len(spaces) + program.split)
    limited = (replace(spaces[0], bytes=spaces[0].bytes - handle), *spaces[1:])
    alignment = program.backends.cost.alignment
    states = [s.state for s in program.slots]
    made = assign_regions([e.plan for e in program.entries], states, limited, alignment, given)
    if not any(made.used[1:]):
        return program
    entries = tuple(replace(e, plan=p) for e, p in zip(program.entries, made.plans, strict=True))
    arguments = (a.c_name for e in entries for a in e.args)
    pointers, members = (
        Scope([*arguments, *program.constant_names.values(), "key", "at", "seed"]),
        Scope(["part"]),
    )
    slots = []
    names = {s.region: pointers.fresh(f"in_{s.region}") for s in spaces}
    for slot in program.slots:
        slots.append(replace(slot, owner=names[spaces[made.states[slot.state]].region]))
    program = replace(program, entries=entries, slots=tuple(slots))
    regions = []
    for k, s in enumerate(spaces):
        arenas = ("float", "int") if k == 0 else (s.region,)
        words = [program.arenas.get(a, 0) for a in arenas]
        own = tuple(slot for slot in slots if slot.owner == names[s.region])
        if own or any(words):
            struct = f"{program.name}_in_{identifier(s.region)}"
            member = members.fresh(s.region)
            regions.append(
                RegionStruct(
                    s.region,
                    struct,
                    member,
                    names[s.region],
                    own,
                    arenas,
                    words[0],
                    sum(words[1:]),
                    alignment,
                )
            )
    return replace(program, regions=tuple(regions))


def _given(program: Program, spaces: Sequence[Space]) -> dict[State, int]:
    """The index of the region of each state that the board gives one."""
    given: dict[State, int] = {}
    for k, space in enumerate(spaces):
        where = f"memory.{space.region}.states"
        for pattern in space.states:
            named = [s.state for s in program.slots if fnmatchcase(s.name, pattern)]
            if not named:
                known = near(pattern, [s.name for s in program.slots])
                raise BoardError(f"{where}: {program.name} has no state {pattern!r}{known}")
            if other := next((s for s in named if given.get(s, k) != k), None):
                region = spaces[given[other]].region
                raise BoardError(f"{where}: {other.name!r} is in memory.{region}.states already")
            given |= dict.fromkeys(named, k)
        size = sum(-(-s.type.bytes // 4) * 4 for s, home in given.items() if home == k)
        if size > space.bytes:
            raise PlanError(
                f"{where}: these take {size} bytes, {space.region} has {space.bytes} for a trainer"
            )
    return given


def over(program: Program, spaces: Sequence[Space]) -> list[tuple[Space, int]]:
    """The regions that are too small, and how many bytes the program needs of each."""
    if not spaces:
        return []
    if not program.regions:
        return [(spaces[0], program.struct_bytes)] if program.struct_bytes > spaces[0].bytes else []
    needed = {r.region: r.bytes for r in program.regions}
    needed[spaces[0].region] = needed.get(spaces[0].region, 0) + program.handle_bytes
    return [(s, needed[s.region]) for s in spaces if needed.get(s.region, 0) > s.bytes]


def state_parts(program: Program) -> list[tuple[Slot, int]]:
    """Runs of states that follow each other in one region, in the order of a checkpoint: the first state of each run,
    and the bytes of the run. Empty for a program without regions."""
    parts: list[tuple[Slot, int]] = []
    for s in program.slots if program.regions else ():
        if parts and parts[-1][0].owner == s.owner:
            parts[-1] = (parts[-1][0], parts[-1][1] + 4 * s.words)
        else:
            parts.append((s, 4 * s.words))
    return parts
