"""The bytes that the steps of an entry find outside a cache that keeps the last used blocks.

Each step uses its operands, its results and its own memory once, from the first byte to the last. The steps of a loop
over micro-batches are run for each of them; another loop or a branch counts as one step.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping

from ...ir.graph import State
from ...ir.node import Value, base
from ...ir.types import planned
from ...ir.views import layout
from ..plan import EntryPlan, PlacedBuffer, PlannedStep, ScanPlan

BLOCK = 4096  # bytes that are in the cache together: an approximation of lines that follow each other

Address = tuple[Hashable, int]  # an object in memory and a byte of it


class _Cache:
    def __init__(self, size: int) -> None:
        self._most = max(size // BLOCK, 1)
        self._blocks: OrderedDict[Address, None] = OrderedDict()
        self.missed = 0

    def use(self, at: Address, size: int) -> None:
        """Use bytes that follow each other."""
        home, start = at
        for number in range(start // BLOCK, -(-(start + size) // BLOCK)):
            block = home, number
            if block in self._blocks:
                self._blocks.move_to_end(block)
                continue
            self.missed += BLOCK
            self._blocks[block] = None
            if len(self._blocks) > self._most:
                self._blocks.popitem(last=False)


def cache_misses(plan: EntryPlan, size: int) -> int:
    """The bytes that one call of the entry finds outside a cache of so many bytes, for the largest batch."""
    cache = _Cache(size)
    _run(plan, cache, {}, {}, {})
    return cache.missed


def _run(
    plan: EntryPlan,
    cache: _Cache,
    memory: Mapping[str, Address],
    outer: Mapping[Value, Address],
    written: Mapping[State | str, Address],
) -> None:
    """Simulate the accesses of a plan's steps. memory: addresses of arenas in the memory of an outer step; outer:
    addresses of inputs that are outer values; written: addresses of states and outputs that are outer results."""

    def within(b: PlacedBuffer) -> Address:
        home, start = memory.get(b.arena_name, (b.arena_name, 0))
        return home, start + b.offset

    found: dict[Value, Address] = dict(outer)
    own: dict[PlannedStep, list[PlacedBuffer]] = {}
    for b in plan.placed:
        found |= {v: within(b) for v in b.values}
        if b.owner is not None:
            own.setdefault(b.owner, []).append(b)
    homes: dict[Value, State | str] = {**plan.states, **plan.outputs}
    found |= {v: written.get(home, (home, 0)) for v, home in homes.items() if v not in found}

    def address(v: Value) -> Address:
        return found.get(base(v), (base(v), 0))

    for step in plan.steps:
        inner = step.inner
        if isinstance(inner, ScanPlan) and inner.samples:
            arenas = {b.pool: within(b) for b in own.get(step, ())}
            _run_micro_batches(step, inner, cache, arenas, address)
            continue
        for v in step.node.operands:
            at, (home, start) = layout(v), address(v)
            if at is not None:
                item = v.type.dtype.size
                steps = zip(planned(at.shape), at.strides, strict=True)
                last = sum((extent - 1) * stride for extent, stride in steps)
                cache.use((home, start + at.offset * item), (last + 1) * item)
        for r in step.node.results:
            cache.use(address(r), r.type.bytes)
        for b in own.get(step, ()):
            cache.use(within(b), b.bytes)


def _run_micro_batches(
    step: PlannedStep,
    loop: ScanPlan,
    cache: _Cache,
    arenas: Mapping[str, Address],
    address: Callable[[Value], Address],
) -> None:
    """Simulate the accesses of all iterations of the loop of a step."""

    def part(v: Value, first: int, offset: int, stride: int | None) -> Address:
        home, start = address(v)
        return home, start + (offset + first * (stride or 0)) * v.type.dtype.size

    for k in range(loop.times):
        first = k * loop.samples
        outer = {b.inner: part(b.outer, first, b.offset, b.step) for b in loop.body.bound}
        written = {w.key: part(step.node.results[w.index], first, 0, w.step) for w in loop.body.written}
        _run(loop.body.plan, cache, arenas, outer, written)
