"""Liveness: the order of the computations of an entry with the lowest peak of live bytes, when each stored value is
alive in that order, and the bytes that are alive at each step.

A computation becomes one step of the entry: loops that compute several nodes, or one call of a kernel.
"""

from __future__ import annotations

import functools
import operator
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from .arena.bound import surely_alive
from .arena.buffer_assignment import ArenaBuffer, place
from .arena.order import first_found, order_steps, problem_of
from .arena.problem import Problem, Steps
from .dependences import control_edges
from .graph import Graph
from .node import Node, Value, topological

Edge = tuple[int, int]  # a computation, and one that comes after it


@dataclass(eq=False)
class Computation:
    """The computation of one step.

    nodes: the nodes of the graph, none for a copy that the graph does not have; inside: the nodes that loops compute,
    which are the same unless the graph has loop nests as nodes; reads: the memory of the operands; stores: the results
    that are stored; scratch: the bytes that the step needs only while it runs. reuses: for a result, the memory that it
    may be stored in, of operands and of earlier results, if nothing reads that memory later. is_loop: whether loops
    compute it.
    """

    nodes: Sequence[Node]
    inside: Sequence[Node]
    reads: Sequence[Value]
    stores: Sequence[Value]
    scratch: int = 0
    reuses: Mapping[Value, Sequence[Value]] = field(default_factory=dict)
    is_loop: bool = False

    @property
    def only_computes_again(self) -> bool:
        """Whether loops compute only values of the forward pass again."""
        return self.is_loop and all(n.origin.recomputed for n in self.inside)


class Liveness:
    """The computations of a graph in an order with a low peak. outside: the results that have memory outside the arena;
    first: outputs that are complete before any other step begins."""

    def __init__(
        self,
        graph: Graph,
        computations: Sequence[Computation],
        outside: Collection[Value],
        first: Collection[str] = (),
    ) -> None:
        self.graph, self.computations = graph, computations
        self._steps, self._numbers = _steps(graph, computations, outside, first)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The indices of the computations in the order in which they are done."""
        return order_steps(self._steps, self.least_height)

    @cached_property
    def alive(self) -> list[int]:
        """The bytes that are alive at each step. The peak of the smaller pool is added to every step of the larger
        one."""
        if not self._integers:
            return problem_of(self._steps).alive(self.order)
        pools = [Problem(of_pool).alive(self.order) for of_pool in self._pools]
        smaller, larger = sorted(pools, key=max)
        return [live + max(smaller) for live in larger]

    @cached_property
    def _integers(self) -> set[int]:
        """The values in the pool of 32-bit integers."""
        return {b for v, b in self._numbers.items() if pool_of(v) == "int"}

    @cached_property
    def _pools(self) -> list[Steps]:
        """The steps with the memory of each pool only."""
        steps = self._steps
        sizes = list(enumerate(steps.sizes))
        floats = replace(steps, sizes=[0 if b in self._integers else size for b, size in sizes])
        integers = [size if b in self._integers else 0 for b, size in sizes]
        return [floats, replace(steps, sizes=integers, scratch=(0,) * len(steps.scratch))]

    @cached_property
    def peak(self) -> int:
        """The most bytes that are alive at once."""
        return max(self.alive, default=0)

    @property
    def height(self) -> tuple[int, int]:
        """The peak, and how many steps reach it."""
        return _height(self.alive)

    @cached_property
    def least_height(self) -> tuple[int, int]:
        """A bound for `height` that holds for every order: a peak, and a number of steps that reach it. It is computed
        without the order."""
        return _height(surely_alive(self._steps, _needs(self._steps.before)))

    def excess(self, budget: int) -> int:
        """The bytes over a budget, added up over all steps."""
        if self._surely_fits(budget):
            return 0
        return sum(max(live - budget, 0) for live in self.alive)

    def _surely_fits(self, budget: int) -> bool:
        """Whether every order, or one that is found at once, needs no more than the budget."""
        steps = self._steps
        if sum(steps.sizes) + max(steps.scratch, default=0) <= budget:
            return True
        return not self._integers and first_found(self._steps).peak <= budget

    @cached_property
    def ranges(self) -> dict[Value, range]:
        """The steps at which each value in the arena is alive."""
        start: dict[int, int] = {}
        end: dict[int, int] = {}
        for at, s in enumerate(self.order):
            for b in self._steps.makes[s]:
                start[b] = end[b] = at
            for b in self._steps.reads[s]:
                end[b] = at
        return {v: range(start[b], end[b] + 1) for v, b in self._numbers.items() if v.node in self.steps_of}

    def placed(self, alignment: int) -> int:
        """The bytes of the arena, gaps between the buffers included."""
        return sum(self._placed(steps, alignment) for steps in self._pools)

    def _placed(self, steps: Steps, alignment: int) -> int:
        end = {b: k for k, s in enumerate(self.order) for b in steps.reads[s]}
        buffers: dict[int, ArenaBuffer] = {}  # by the value that has it last
        done: list[ArenaBuffer] = []
        for at, s in enumerate(self.order):
            free, reuses = {b for b in steps.reads[s] if end[b] == at}, dict(steps.reuses[s])
            for b in steps.makes[s]:
                last, size = end.get(b, at), steps.sizes[b]
                reused = next((v for v in reuses.get(b, ()) if v in free), None)
                if reused is None:
                    buffers[b] = ArenaBuffer(len(done) + len(buffers), size, at, last, alignment)
                    continue
                free.remove(reused)
                old = buffers.pop(reused)
                if size == steps.sizes[reused] and not old.later:
                    buffers[b] = replace(old, end=last)
                else:
                    buffers[b] = replace(old, later=(*old.later, (size, at + 1, last)))
            if steps.scratch[s]:
                done.append(ArenaBuffer(len(done) + len(buffers), steps.scratch[s], at, at, alignment))
        keyed = [replace(b, key=k) for k, b in enumerate([*buffers.values(), *done])]
        return place(keyed).peak

    @cached_property
    def at(self) -> int:
        """The first step that reaches the peak."""
        return self.alive.index(self.peak)

    @property
    def at_the_peak(self) -> list[Value]:
        """The values that are alive at the step `at`, the largest first."""
        found = [v for v, steps in self.ranges.items() if self.at in steps]
        return sorted(found, key=lambda v: -v.type.bytes)

    @cached_property
    def steps_of(self) -> dict[Node, set[int]]:
        """The steps that compute each node."""
        found: dict[Node, set[int]] = defaultdict(set)
        for at, s in enumerate(self.order):
            for n in self.computations[s].nodes:
                found[n].add(at)
        return dict(found)


def pool_of(v: Value) -> str:
    """The part of the arena that a value is stored in: "int" for 32-bit integers, "float" for all else."""
    return "int" if v.type.dtype.kind in "iu" and v.type.dtype.size == 4 else "float"


def strip_of(nodes: Sequence[Node]) -> tuple[int, int] | None:
    """The strip that all of these nodes belong to; None if there is none."""
    found = {n.origin.strip for n in nodes}
    return found.pop() if len(found) == 1 else None


def _words(v: Value) -> int:
    return (v.type.bytes + 3) // 4 * 4


def _height(alive: Sequence[int]) -> tuple[int, int]:
    peak = max(alive, default=0)
    return peak, alive.count(peak)


def _steps(
    graph: Graph, computations: Sequence[Computation], outside: Collection[Value], first: Collection[str]
) -> tuple[Steps, dict[Value, int]]:
    """The steps in tuples, which are hashed; and the number of each value that is stored in the arena."""
    read = {v for c in computations for v in c.reads}
    numbers: dict[Value, int] = {}
    makes, memory = [], []
    for c in computations:
        passing = {r for r in c.stores if r not in read and r not in outside}
        found, replaced = _memory({r: of for r, of in c.reuses.items() if r not in outside}, passing)
        memory.append(found)
        mine = [r for r in c.stores if not (r in outside or r in replaced)]
        makes.append(tuple([numbers.setdefault(r, len(numbers)) for r in mine]))
    reads, reuses = [], []
    for c, found in zip(computations, memory, strict=True):
        reads.append(tuple([numbers[v] for v in c.reads if v in numbers]))
        kept = [(numbers[r], of) for r, of in found.items() if r in numbers]
        reuses.append(tuple([(r, tuple([numbers[v] for v in of if v in numbers])) for r, of in kept]))
    before = _before(graph, computations, first)
    _add_preferences(computations, before)
    scratch, sizes = tuple([c.scratch for c in computations]), tuple([_words(r) for r in numbers])
    steps = Steps(tuple(map(tuple, before)), tuple(makes), tuple(reads), tuple(reuses), scratch, sizes)
    return steps, numbers


def _memory(
    reuses: Mapping[Value, Sequence[Value]], passing: Collection[Value]
) -> tuple[dict[Value, Sequence[Value]], set[Value]]:
    """For each result the memory that it may reuse; and the results in `passing`, which no computation reads, whose
    memory another result of the same computation reuses. The first result that may reuse it does so."""
    found: dict[Value, Sequence[Value]] = {}
    replaced: set[Value] = set()
    for r, of in reuses.items():
        old = next((v for v in of if v in passing and v not in replaced), None)
        found[r] = of if old is None else found.get(old, ())
        replaced |= {old} if old is not None else set()
    return found, replaced


def needed_by(graph: Graph, outputs: Collection[str]) -> set[Node]:
    """The nodes that compute the outputs of these names."""
    return set(topological(v for name, v in graph.outputs.items() if name in outputs))


def _before(graph: Graph, computations: Sequence[Computation], first: Collection[str]) -> list[list[int]]:
    """For each computation the computations that must come before it."""
    maker = {v: i for i, c in enumerate(computations) for v in c.stores}
    index = {n: i for i, c in enumerate(computations) for n in c.nodes}
    edges = control_edges(graph)
    before = []
    for i, c in enumerate(computations):
        earlier = [maker[v] for v in c.reads if v in maker]
        earlier += [index[m] for n in c.nodes for m in edges.get(n, ()) if m in index]
        before.append([k for k in earlier if k != i])
    if first:
        urgent, needs = needed_by(graph, first), _needs(before)
        wanted = [own for own, c in zip(needs, computations, strict=True) if not urgent.isdisjoint(c.nodes)]
        early = functools.reduce(operator.or_, wanted, 0)
        for i, own in enumerate(before):
            own += [] if early >> i & 1 else [k for k in range(len(before)) if early >> k & 1]
    return before


def _add_preferences(computations: Sequence[Computation], before: list[list[int]]) -> None:
    """Add the computations that should come before another one, where that is possible."""
    wanted = [*_between_strips(computations), *_before_copies(computations, before)]
    if not wanted:
        return
    needs = _needs(before)
    for p, s in wanted:
        if needs[p] >> s & 1:
            continue
        before[s].append(p)
        if not needs[s] >> p & 1:
            needs = [own | needs[p] if own >> s & 1 else own for own in needs]


def _needs(before: Sequence[Sequence[int]]) -> list[int]:
    """The computations that each depends on, itself among them, a bit each."""
    needs: dict[int, int] = {}
    pending = list(range(len(before)))
    while pending:
        s = pending[-1]
        missing = [p for p in before[s] if p not in needs]
        pending += missing
        if not missing:
            needs[pending.pop()] = functools.reduce(operator.or_, (needs[p] for p in before[s]), 1 << s)
    return [needs[s] for s in range(len(before))]


def _before_copies(computations: Sequence[Computation], before: Sequence[Sequence[int]]) -> Iterator[Edge]:
    """Edges by which values are computed again only after the other operands of their first reader: so they are alive
    for a short time."""
    readers: dict[int, list[int]] = {}
    maker = {v: i for i, c in enumerate(computations) for v in c.stores}
    for s, c in enumerate(computations):
        for p in {maker[v] for v in c.reads if v in maker}:
            readers.setdefault(p, []).append(s)
    copies = {s for s, c in enumerate(computations) if s in readers and c.only_computes_again}
    for s in sorted(copies):
        yield from ((p, s) for p in before[min(readers[s])] if p not in copies)


def _between_strips(computations: Sequence[Computation]) -> Iterator[Edge]:
    """Edges by which each strip comes after the strip before it."""
    strips: dict[tuple[int, int], list[int]] = {}
    for s, c in enumerate(computations):
        if (strip := strip_of(c.inside)) is not None:
            strips.setdefault(strip, []).append(s)
    for (region, k), mine in strips.items():
        yield from ((p, s) for s in mine for p in strips.get((region, k - 1), ()))
