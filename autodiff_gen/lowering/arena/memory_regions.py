"""The region of memory of every state and every buffer, where a board has several regions of RAM.

States and buffers are sorted by the bytes that a step of training moves of them for each byte of their size, and go,
one after the other, to the region with the cheapest access in which they still fit. Where the bytes that are alive at
once fit but their placement does not, the region counts as that much smaller, and all is done again; then by size.
States whose region is given are there before.

    main 100, ccm 64:  w 90 bytes, moved 4 times; x 50 bytes, moved 2 times  ->  w: main, x: ccm
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from ...ir.arena.buffer_assignment import ArenaPlan
from ...ir.graph import State
from ...targets.memory import Space
from ..plan import EntryPlan, PlacedBuffer, place_members
from .traffic import of_buffer, of_states, traffic

ROUNDS = 8  # in which regions may count as smaller than they are


@dataclass(frozen=True)
class RegionAssignment:
    """plans: the entries' plans, with buffers in arenas; states: the index of each state's region; used: bytes of
    each region."""

    plans: tuple[EntryPlan, ...]
    states: dict[State, int]
    used: tuple[int, ...]

    def missing(self, spaces: Sequence[Space]) -> int:
        """The bytes by which the contents of regions exceed their sizes, added up over the regions."""
        return sum(max(used - s.bytes, 0) for used, s in zip(self.used, spaces, strict=True))


@dataclass(frozen=True, eq=False)
class _Item:
    """A state, or a buffer of an entry with the later buffers at its offset: from step `start` to step `end`, both
    included."""

    of: State | PlacedBuffer
    bytes: int
    moved: int
    entry: int = -1
    start: int = 0
    end: int = 0


def assign_regions(
    plans: Sequence[EntryPlan],
    states: Sequence[State],
    spaces: Sequence[Space],
    alignment: int,
    given: Mapping[State, int] = MappingProxyType({}),
) -> RegionAssignment:
    """A region for every state and buffer: a placement that fits or, if none is found, the placement that misses the
    least bytes. given: the index of the region of some states."""
    items = _items(plans, states, alignment)
    orders: list[Callable[[_Item], tuple[float, ...]]] = [
        lambda i: (-i.moved / i.bytes, -i.bytes),
        lambda i: (-i.bytes, -i.moved),
    ]
    best: RegionAssignment | None = None
    for order in orders:
        limits = [s.bytes for s in spaces]
        for _ in range(ROUNDS):
            regions = _assigned(sorted(items, key=order), spaces, limits, plans, given)
            found = _placed(plans, regions, spaces, alignment)
            if best is None or found.missing(spaces) < best.missing(spaces):
                best = found
            if not found.missing(spaces):
                return found
            limits = [m - max(u - s.bytes, 0) for m, u, s in zip(limits, found.used, spaces, strict=True)]
    assert best is not None
    return best


def _items(plans: Sequence[EntryPlan], states: Sequence[State], alignment: int) -> list[_Item]:
    moved: Counter[State] = Counter()
    buffers: list[_Item] = []
    for k, plan in enumerate(plans):
        values, memory = traffic(plan)
        moved += of_states(plan, values)
        ends = {b.root: b.end for b in plan.placed}
        for b in ends:
            size = -(-max(b.bytes, 1) // alignment) * alignment
            buffers.append(_Item(b, size, of_buffer(b, values, memory), k, b.start, ends[b]))
    return [*(_Item(s, -(-s.type.bytes // 4) * 4, moved[s]) for s in states), *buffers]


def _assigned(
    items: Sequence[_Item],
    spaces: Sequence[Space],
    limits: Sequence[int],
    plans: Sequence[EntryPlan],
    given: Mapping[State, int],
) -> dict[State | PlacedBuffer, int]:
    """The region of each item, in this order, but first of the items that have no choice. Integers of 32 bits and items
    that fit nowhere are in the main region."""
    fixed = [0] * len(spaces)
    live = [[[0] * (len(plan.steps) + 1) for plan in plans] for _ in spaces]
    peaks = [[0] * len(plans) for _ in spaces]
    cheapest = sorted(range(len(spaces)), key=lambda k: spaces[k].cost)

    def put(item: _Item, k: int, always: bool) -> bool:
        if item.entry < 0:
            if not always and fixed[k] + item.bytes + max(peaks[k]) > limits[k]:
                return False
            fixed[k] += item.bytes
            return True
        steps = live[k][item.entry]
        peak = item.bytes + max(steps[item.start : item.end + 1])
        if not always and fixed[k] + max(*peaks[k], peak) > limits[k]:
            return False
        for step in range(item.start, item.end + 1):
            steps[step] += item.bytes
        peaks[k][item.entry] = max(peaks[k][item.entry], peak)
        return True

    def choices(item: _Item) -> list[int]:
        if isinstance(item.of, State):
            return [given[item.of]] if item.of in given else cheapest
        return cheapest if item.of.pool != "int" else [0]  # only the main region has an arena of integers

    out: dict[State | PlacedBuffer, int] = {}
    for item in sorted(items, key=lambda item: len(choices(item))):
        choice = choices(item)
        out[item.of] = next((k for k in choice if put(item, k, len(choice) == 1)), -1)
        if out[item.of] < 0:
            out[item.of] = 0
            put(item, 0, True)
    return out


def _placed(
    plans: Sequence[EntryPlan],
    regions: dict[State | PlacedBuffer, int],
    spaces: Sequence[Space],
    alignment: int,
) -> RegionAssignment:
    """The plans with arenas in the regions, and the bytes used of each region."""
    placed = tuple(_with_arenas(plan, regions, spaces, alignment) for plan in plans)
    states = {s: k for s, k in regions.items() if isinstance(s, State)}
    used = []
    for k, space in enumerate(spaces):
        fixed = sum(-(-s.type.bytes // 4) * 4 for s, region in states.items() if region == k)
        arenas = ("float", "int") if k == 0 else (space.region,)
        sizes = [max((p.plans[a].peak for p in placed if a in p.plans), default=0) for a in arenas]
        used.append(fixed + (-fixed % alignment if sizes[0] else 0) + sum(sizes))
    return RegionAssignment(placed, states, tuple(used))


def _with_arenas(
    plan: EntryPlan, regions: dict[State | PlacedBuffer, int], spaces: Sequence[Space], alignment: int
) -> EntryPlan:
    made: dict[PlacedBuffer | None, PlacedBuffer] = {}
    for b in plan.placed:
        region = regions[b.root]
        made[b] = replace(b, arena="" if region == 0 else spaces[region].region, over=made.get(b.over))
    plans: dict[str, ArenaPlan] = {}
    for arena in ("float", "int", *(s.region for s in spaces[1:])):
        members = [b for b in made.values() if b.arena_name == arena]
        if members or arena in ("float", "int"):
            plans[arena] = place_members(members, alignment)
    return replace(plan, placed=list(made.values()), plans=plans)
