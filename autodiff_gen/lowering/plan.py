"""The planner's decisions: steps in order, the place of every value, and the plans of loops and branches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ..ir.arena.buffer_assignment import ArenaBuffer, ArenaPlan, place
from ..ir.batch_axis import times_of
from ..ir.build import make_input
from ..ir.graph import Graph, State
from ..ir.kernel_call import KernelCall
from ..ir.node import Node, Value
from ..ir.types import Size, Type, s8
from ..kernels.contract import SCRATCH
from ..kernels.table import Kernel
from ..passes.loops.loop_nest import LoopNest
from ..passes.loops.nesting import Scratch
from ..passes.work_estimate import Work
from .loops.statements import Statements


@dataclass(eq=False)
class PlacedBuffer:
    """A buffer of the arena: the values that are stored in it one after the other, its steps, and its offset in
    bytes.
    """

    values: list[Value]  # none: memory for the steps of a region
    owner: PlannedStep | None  # the step whose scratch it is
    bytes: int
    start: int
    end: int
    pool: str  # "float" or "int"
    offset: int = -1
    arena: str = ""  # the region whose arena it is in; empty: the arena of its pool, in the main region
    over: PlacedBuffer | None = None  # the larger buffer at its offset, whose last step writes this one

    @property
    def root(self) -> PlacedBuffer:
        """The largest of the buffers at its offset."""
        return self if self.over is None else self.over.root

    @property
    def arena_name(self) -> str:
        """The arena that it is in, by the name in the entry's plans."""
        return self.arena or self.pool


@dataclass(eq=False)
class PlannedStep:
    """One call, loop nest, or region with inner steps. `number` counts from 1 in the order of execution."""

    node: Node
    number: int = 0
    inner: RegionPlan | None = None
    nest: LoopNest | None = None
    statements: Statements | None = None  # of the loop nest
    own: Mapping[Value, Value] = field(default_factory=dict)  # this step's values for values of a shared nest
    scratch: dict[Value, Scratch] = field(default_factory=dict)  # memory that the step needs while it runs
    calls: dict[Node, tuple[KernelCall, Kernel]] = field(default_factory=dict)
    memory: dict[Node, Value] = field(default_factory=dict)  # scratch for the kernels of nodes
    gathered: dict[Node, Value] = field(default_factory=dict)  # scratch for rows of a product's first factor
    in_place: bool = False  # a call whose result has the memory of operand 0

    def give_memory(self, node: Node, size: int) -> Value:
        """So many bytes of scratch memory for the kernel of a node."""
        memory = self.memory[node] = make_input(SCRATCH, Type(s8, (size,)))
        self.scratch[memory] = Scratch(memory, (), (size,), s8)
        return memory


@dataclass(eq=False)
class EntryPlan:
    """An entry function, decided: steps in order, the place of every value, and the sizes of the arena in bytes."""

    graph: Graph
    steps: list[PlannedStep]
    states: dict[Value, State]  # values that are stored in a state: old values and new ones
    outputs: dict[Value, str]  # values that are stored in the caller's memory
    placed: list[PlacedBuffer]
    plans: Mapping[str, ArenaPlan]  # by pool; arenas in further regions of memory by the name of the region
    copies: list[str]  # states whose old value is copied
    work: Work | None = None  # where a RAM budget or a cache may change it
    mixed: str = ""  # why its batch cannot be divided, where it exceeds the budget

    @property
    def steps_before_updates(self) -> int:
        """How many steps are made before the first that writes to a state."""
        writes = (any(r in self.states for r in step.node.results) for step in self.steps)
        return next((k for k, does in enumerate(writes) if does), len(self.steps))

    @property
    def loop_names(self) -> tuple[str, ...]:
        """The variables of loops over micro-batches: the first sample, and the number of samples."""
        return ("start", "count") if self.samples else ()

    @property
    def samples(self) -> int:
        """How many samples a micro-batch has at most; 0 where the batch is not divided."""
        return max((s.inner.samples for s in self.steps if isinstance(s.inner, ScanPlan)), default=0)

    @property
    def kernels(self) -> list[Kernel]:
        return [kernel for _, step in self.all_steps() for _, kernel in step.calls.values()]

    def all_steps(self, prefix: str = "", start: int = 0) -> Iterator[tuple[str, PlannedStep]]:
        """Every step with its number, "3"; steps of regions, "3.1", after the step that has them."""
        for step in self.steps:
            number = f"{prefix}{start + step.number}"
            yield number, step
            for part in step.inner.parts if step.inner is not None else ():
                yield from part.plan.all_steps(f"{number}.", part.start)

    def all_plans(self) -> Iterator[EntryPlan]:
        """This plan and the plans of the regions in it."""
        yield self
        for step in self.steps:
            for part in step.inner.parts if step.inner is not None else ():
                yield from part.plan.all_plans()


def place_members(members: Sequence[PlacedBuffer], alignment: int) -> ArenaPlan:
    """Give the buffers of an arena their offsets."""
    parts: dict[PlacedBuffer, list[tuple[int, int, int]]] = {}
    for b in members:
        parts.setdefault(b.root, []).append((b.bytes, b.start, b.end))
    key = {b: i for i, b in enumerate(parts)}
    plan = place(
        [ArenaBuffer(key[b], *first, alignment, tuple(later)) for b, (first, *later) in parts.items()]
    )
    for b in members:
        b.offset = plan.offsets[key[b.root]]
    return plan


@dataclass(frozen=True)
class Bound:
    """An input of an inner graph and the outer value that it shows, from element `offset` of its bytes on;
    `step`: elements from one time to the next, None where it stays.
    """

    inner: Value
    outer: Value
    offset: int = 0
    step: int | None = None


@dataclass(frozen=True)
class Written:
    """An output (by name) or state of an inner graph that is written to result `index` of the node. `step`: elements
    from one time to the next, None if the result has no time axis."""

    key: str | State
    index: int
    shape: tuple[object, ...]
    c_type: str
    step: int | None = None


@dataclass(frozen=True, eq=False)
class InnerPlan:
    """One inner plan with the bindings of its inputs, outputs and states; its steps count on from `start`."""

    plan: EntryPlan
    bound: tuple[Bound, ...]
    written: tuple[Written, ...]
    start: int = 0


@dataclass(frozen=True, eq=False)
class ScanPlan:
    """`first` writes the carries' first values (None without carries), `body` is the loop's. samples: of a loop over
    micro-batches, the most that one has; 0 otherwise."""

    first: InnerPlan | None
    body: InnerPlan
    length: Size
    reverse: bool
    reuses: Mapping[int, Value]  # result -> operand whose buffer it reuses
    samples: int = 0

    @property
    def times(self) -> int:
        """How often the body is run, for the largest batch."""
        return times_of(self.length, self.samples)

    @property
    def parts(self) -> list[InnerPlan]:
        return [self.body] if self.first is None else [self.first, self.body]


@dataclass(frozen=True, eq=False)
class CondPlan:
    """Two parts; one of them is run."""

    then: InnerPlan
    otherwise: InnerPlan
    reuses: Mapping[int, Value] = field(default_factory=dict)

    @property
    def parts(self) -> list[InnerPlan]:
        return [self.then, self.otherwise]


RegionPlan: TypeAlias = ScanPlan | CondPlan
