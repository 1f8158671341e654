"""Plain records of an entry for the reports: `explain` prints them, the page draws them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

# Uses of a buffer beside the phases of ir/origin.py.
AGAIN, SCRATCH, INSIDE = "computed again", "scratch", "the steps inside"


@dataclass(frozen=True)
class ReportedTensor:
    """A value of an entry; `type` as text: f32[1,32]; `first`: the index of the step that computes it; `use`: the phase
    of that step, AGAIN, SCRATCH or INSIDE; `layer`: the layer of that step."""

    name: str
    type: str
    bytes: int
    first: int
    use: str
    layer: str


@dataclass(frozen=True)
class ReportedBuffer:
    """Bytes of an arena and when they are used. `offset` counts from the arena's start, also inside a loop or a branch;
    `first` and `last` are indices into the steps of the entry, both included."""

    pool: str
    offset: int
    bytes: int
    size: int  # bytes, rounded up to the alignment of the arena
    first: int
    last: int
    steps: str  # "3", "3 to 9", "4.1 to 4.3"
    tensors: tuple[
        ReportedTensor, ...
    ]  # one after the other; none where the steps of a loop or branch have the memory
    use: str  # of its first tensor
    layer: str
    nested: bool  # inside the memory of a loop or a branch

    def at(self, step: int) -> ReportedTensor:
        """The tensor that is stored in it after a step."""
        return [t for t in self.tensors if t.first <= step or t is self.tensors[0]][-1]

    @property
    def is_scratch(self) -> bool:
        return self.use == SCRATCH


@dataclass(frozen=True)
class ReportedCall:
    """A call of a kernel: its symbol, the backend where the contract does not declare it, sizes, the conditions of its
    table row, and the kernels that were rejected, each with the reason."""

    symbol: str
    owner: str
    sizes: str
    conditions: str
    rejected: tuple[str, ...]

    def __str__(self) -> str:
        owner = f" of {self.owner}" if self.owner else ""
        chosen = f", chosen for {self.conditions}" if self.conditions else ""
        return f"{self.symbol}{owner} ({self.sizes}{chosen})"


@dataclass(frozen=True)
class ReportedOperand:
    """An operand or result of a step: the tensor with this index of a buffer of its entry, or a state, an argument or a
    constant by name."""

    name: str
    buffer: int | None = None
    tensor: int = 0


@dataclass(frozen=True)
class Again:
    """A value of the forward pass that a step computes again in place of reading it. `until`: the last step before this
    step at which memory holds the value, "" if memory never holds all of it. From `until` on, the value would take
    `bytes` if it were kept.
    """

    step: str
    name: str
    type: str
    bytes: int
    layer: str
    until: str = ""


@dataclass(frozen=True)
class Strips:
    """Layers that are computed strip by strip, as the arena would exceed the budget of RAM: how many, and the first and
    the last step."""

    count: int
    first: str
    last: str
    layers: tuple[str, ...]


@dataclass(frozen=True)
class StepRecord:
    """One step of an entry, in the order of execution; `by`: its loops or region in words where it calls no kernel;
    `functions`: of the library, whose calls it computes; `instructions`: about how many, without the steps inside."""

    number: str
    text: str  # the comment of the generated C
    layer: str
    phase: str
    by: str
    calls: tuple[ReportedCall, ...]
    reads: tuple[ReportedOperand, ...]
    writes: tuple[ReportedOperand, ...]
    functions: tuple[str, ...]
    instructions: float


@dataclass(frozen=True)
class Arena:
    """One arena of an entry: its bytes, and the most bytes that are alive at once in this order of the steps."""

    peak: int
    bound: int


@dataclass(frozen=True)
class EntryRecord:
    """One generated function."""

    name: str
    c_name: str
    steps: tuple[StepRecord, ...]
    buffers: tuple[ReportedBuffer, ...]
    arenas: Mapping[str, Arena]  # by pool; those without memory are left out, but for the first
    again: tuple[Again, ...]
    copies: tuple[str, ...]  # states whose old value is copied
    graph: str  # the IR
    inputs: Mapping[str, str]  # their types
    outputs: Mapping[str, str]
    instructions: float  # about how many a call executes
    network_bound: int = 0  # bytes (lowering/arena/network_bound.py); 0 without stored products
    strips: tuple[Strips, ...] = ()
    samples: int = 0  # of a micro-batch at most, where the batch is divided
    divided_for: str = ""  # the reason, in words: a budget or a cache

    @property
    def arena_bytes(self) -> int:
        return sum(a.peak for a in self.arenas.values())

    @property
    def bound_bytes(self) -> int:
        return sum(a.bound for a in self.arenas.values())

    @property
    def bounds(self) -> list[tuple[str, int]]:
        """Names and bytes of the lower bounds of the arenas: for this order of the steps, and for the network."""
        network = [("bound of the network", self.network_bound)] if self.network_bound else []
        return [("lower bound of this schedule", self.bound_bytes), *network]

    def type_of(self, o: ReportedOperand) -> str:
        """The type of a tensor in an arena, or of an argument."""
        if o.buffer is not None:
            return self.buffers[o.buffer].tensors[o.tensor].type
        return self.outputs.get(o.name, self.inputs.get(o.name, ""))

    def live(self, step: int) -> list[ReportedBuffer]:
        """The buffers in use at a step, largest first; for the memory of a loop or branch, the buffers in it at that
        step."""
        held = [b for b in self.buffers if b.first <= step <= b.last and b.tensors]
        return sorted(held, key=lambda b: (-b.size, b.pool, b.offset))

    @cached_property
    def lives(self) -> dict[str, list[tuple[int, int]]]:
        """For the name of a tensor the indices of the first and the last step at which memory holds it."""
        out: dict[str, list[tuple[int, int]]] = {}
        for b in self.buffers:
            ends = [*(t.first - 1 for t in b.tensors[1:]), b.last]
            for t, last in zip(b.tensors, ends, strict=bool(b.tensors)):
                out.setdefault(t.name, []).append((t.first, last))
        return out

    @cached_property
    def live_bytes(self) -> list[int]:
        """For each step the bytes of all arenas that are in use, the whole memory of a loop or branch included."""
        return self._in_use([b for b in self.buffers if not b.nested])

    def _in_use(self, buffers: Iterable[ReportedBuffer]) -> list[int]:
        """For each step the bytes of these buffers that are in use."""
        changes = [0] * (len(self.steps) + 1)
        for b in buffers:
            changes[b.first] += b.size
            changes[b.last + 1] -= b.size
        return list(accumulate(changes[:-1]))

    @cached_property
    def peak(self) -> int:
        """The first step at which most bytes are in use; of the steps inside a loop or branch, the one
        with the largest buffers."""
        shown = self._in_use([b for b in self.buffers if b.tensors])
        return max(range(len(self.steps)), key=lambda k: (self.live_bytes[k], shown[k], -k))
