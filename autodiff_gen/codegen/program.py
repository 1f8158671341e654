"""The program: everything that the emitter, the host runner and the reports need to know of a compiled model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..ir.graph import Check, State
from ..ir.names import Called, abbreviations, called_state
from ..ir.node import Value
from ..ir.op_kinds import Elementwise
from ..ir.types import Type, bound
from ..kernels.registry import Backends
from ..kernels.table import Kernel
from ..lowering.c import c_ast as c
from ..lowering.plan import EntryPlan
from .constants import constant_names

INDEX = "(index)"  # the output of a check's plan: no name that an input may have


@dataclass(frozen=True)
class Arg:
    """One argument of an entry function, in C's order. Scalars (shape ()) that come in are passed by value."""

    name: str  # as the model calls it
    c_name: str
    type: Type
    role: str  # "input", "param" (a parameter given to a plain function), "output"
    classes: int | None = None  # integer inputs that are indices: values in [0, classes) are valid
    value: Value | None = None  # the graph's input, None for outputs
    checks: tuple[Check, ...] = ()  # of indices that are computed from it

    @property
    def by_value(self) -> bool:
        return self.role != "output" and self.type.shape == ()


@dataclass(frozen=True)
class CheckPlan:
    """The plan that computes an index before the first step, as the output `INDEX` of a separate entry."""

    check: Check
    plan: EntryPlan


@dataclass(frozen=True)
class Slot:
    """One state in the trainer's struct: a parameter, a moment, a counter."""

    name: str  # as state_dict calls it
    c_name: str
    type: Type
    init: Any
    role: str  # one of ROLES
    state: State
    owner: str = "t"  # the pointer to its struct: the trainer's, or a region's

    @property
    def words(self) -> int:
        return (self.type.bytes + 3) // 4

    @property
    def count(self) -> int:
        """Elements of its member of the struct, which fills whole words."""
        return 4 * self.words // self.type.dtype.size


@dataclass(frozen=True)
class RegionStruct:
    """The struct of a program in one of several regions of memory. `struct` is `<m>_in_<region>`, `member` the handle's
    pointer to it, and `pointer` the local name of that pointer; `arenas` are the plans' arenas there: of floats, of
    integers."""

    region: str
    struct: str
    member: str
    pointer: str
    slots: tuple[Slot, ...]
    arenas: tuple[str, ...]
    arena_words: int
    int_words: int
    alignment: int

    @property
    def state_bytes(self) -> int:
        return 4 * sum(s.words for s in self.slots)

    @property
    def padding_words(self) -> int:
        return -self.state_bytes % self.alignment // 4 if self.arena_words else 0

    @property
    def bytes(self) -> int:
        """sizeof the struct; every member is 4-byte aligned and sized."""
        return self.state_bytes + 4 * (self.padding_words + self.arena_words + self.int_words)

    @property
    def macro(self) -> str:
        return f"{self.struct.upper()}_BYTES"


@dataclass(frozen=True)
class Entry:
    """One generated function: `c_name(t, inputs.., [n], scalars.., outputs..)`."""

    name: str
    c_name: str
    args: tuple[Arg, ...]
    takes_n: bool
    plan: EntryPlan
    checks: tuple[CheckPlan, ...] = ()

    @property
    def plans(self) -> tuple[EntryPlan, ...]:
        """The plans of the checks, then the plan of the steps."""
        return (*(check.plan for check in self.checks), self.plan)

    @property
    def parameters(self) -> tuple[Arg | None, ...]:
        """The arguments in C's order. n, between the arrays and the scalars, is None here."""
        if not self.takes_n:
            return self.args
        arrays = tuple(a for a in self.args if not (a.by_value or a.role == "output"))
        return (*arrays, None, *self.args[len(arrays) :])

    def is_lr(self, arg: Arg) -> bool:
        """Whether an argument is the learning rate of a model, which has a default; functions have none."""
        return self.name in ("train_step", "apply") and arg.by_value and arg.name == "lr"

    @property
    def least_n(self) -> int:
        """The fewest samples that it takes."""
        return self.plan.graph.least_n


@dataclass(frozen=True)
class Program:
    """A compiled model (`struct` is `<m>_trainer`) or plain function (`<f>_work`)."""

    name: str
    struct: str
    batch: int
    slots: tuple[Slot, ...]
    entries: tuple[Entry, ...]
    graph_id: int  # of names, shapes and storage order
    program_id: int  # of the computation: model/program_id.py
    default_lr: float | None
    backends: Backends
    split: bool = False  # whether <m>_train_part exists, which runs train_step one numbered step a call
    restore_after: int = (
        0  # number of rejected steps in a row after which the link's firmware loads the last checkpoint
    )
    guard_bytes: int | None = None  # with guard="gradients": bytes more than with guard="loss"
    frozen: Mapping[str, Any] = field(
        default_factory=dict
    )  # parameters and buffers that are constants, as arrays
    state_names: tuple[str, ...] = ()  # of a state_dict, frozen ones included
    tied: Mapping[str, str] = field(default_factory=dict)  # other names of shared parameters -> the first
    regions: tuple[RegionStruct, ...] = ()  # of memory, where there are several; the struct points to theirs

    @property
    def is_model(self) -> bool:
        return self.struct.endswith("_trainer")

    @property
    def samples(self) -> int:
        """The most samples of a step: the first extent of the inputs of a model, if all inputs have the same; otherwise
        the batch."""
        inputs = [a for e in self.entries for a in e.args if a.role == "input" and not a.by_value]
        firsts = {bound(a.type.shape, self.batch)[:1] for a in inputs if self.is_model}
        return min(firsts.pop(), default=self.batch) if len(firsts) == 1 else self.batch

    @property
    def guard_cost(self) -> str:
        """The cost of guard="gradients", in words; empty with another guard."""
        if self.guard_bytes is None:
            return ""
        more = f"{abs(self.guard_bytes)} bytes {'more' if self.guard_bytes >= 0 else 'less'}"
        return f'guard="gradients" takes {more} than guard="loss"'

    @property
    def headers(self) -> tuple[str, ...]:
        """The headers that the entries' expressions include in addition to ag_math.h."""
        plans = [plan for e in self.entries for plan in e.plans]
        nests = [s.nest for plan in plans for _, s in plan.all_steps() if s.nest is not None]
        lowers = [n.op.lower for nest in nests for n in nest.region.nodes]
        return tuple(sorted({k.header for k in lowers if isinstance(k, Elementwise) and k.header}))

    @property
    def too_few(self) -> str:
        """The error of a call whose n is too small, in words."""
        return "below 1" if all(e.least_n == 1 for e in self.entries) else "less than the function takes"

    @property
    def padding_words(self) -> int:
        """float before_arena[padding_words], absent when 0: where the struct is aligned, the arena is."""
        return -self.state_bytes % self.backends.cost.alignment // 4

    @property
    def arena_words(self) -> int:
        """float arena[arena_words]: the largest over the entries, which share it."""
        return max(p.plans["float"].peak for e in self.entries for p in e.plans) // 4

    @property
    def int_words(self) -> int:
        """int32_t int_arena[int_words], absent when 0."""
        return max(p.plans["int"].peak for e in self.entries for p in e.plans) // 4

    @property
    def state_bytes(self) -> int:
        return 4 * sum(s.words for s in self.slots)

    @property
    def struct_bytes(self) -> int:
        """sizeof the struct, or of its handle and the structs in regions; every member is 4-byte aligned and sized."""
        if self.regions:
            return sum(r.bytes for r in self.regions) + self.handle_bytes
        words = self.padding_words + max(self.arena_words, 1) + self.int_words + self.split
        return self.state_bytes + 4 * words

    @property
    def handle_bytes(self) -> int:
        """sizeof the struct on a core with addresses of 32 bits, where it points to structs in regions."""
        return 4 * (len(self.regions) + self.split)

    @property
    def arena_bytes(self) -> int:
        """All arenas together."""
        return 4 * sum(self.arenas.values())

    @property
    def bound_bytes(self) -> int:
        """The least struct_bytes that any placement of the chosen orders could reach."""
        bounds: dict[str, int] = {}
        for plan in (plan for e in self.entries for plan in e.plans):
            bounds |= {a: max(p.bound, bounds.get(a, 0)) for a, p in plan.plans.items()}
        padding = sum(r.padding_words for r in self.regions) if self.regions else self.padding_words
        handle = self.handle_bytes if self.regions else 4 * self.split
        return self.state_bytes + 4 * padding + handle + sum(bounds.values())

    @property
    def arenas(self) -> Mapping[str, int]:
        """The words of each arena of the plans, the most over the entries."""
        words: dict[str, int] = {}
        for plan in (plan for e in self.entries for plan in e.plans):
            words |= {a: max(p.peak // 4, words.get(a, 0)) for a, p in plan.plans.items()}
        return words

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels that are called, each once, by symbol."""
        found = {k.symbol: k for e in self.entries for plan in e.plans for k in plan.kernels}
        return tuple(found[s] for s in sorted(found))

    @cached_property
    def scopes(self) -> frozenset[str]:
        """The paths of modules in the names of values."""
        graphs = [inner.graph for e in self.entries for plan in e.plans for inner in plan.all_plans()]
        nodes = [n for g in graphs for m in g.nodes for n in (m, *(i for r in m.regions for i in r.nodes))]
        origins = {n.origin for n in nodes}
        return frozenset(
            {o.scope for o in origins} | {label.scope for o in origins for label in o.labels.values()}
        )

    @cached_property
    def layers(self) -> Mapping[str, str]:
        """Short names of modules with a long path, for the names of values."""
        return abbreviations(self.scopes - {s.name for s in self.slots})

    @cached_property
    def called(self) -> Mapping[c.Member, Called]:
        """The meaning of the names of states."""
        paths = {s.name.rpartition(".")[0] for s in self.slots if s.role != "optimizer"} - {""}
        return {c.Member(s.owner, s.c_name): called_state(s.name, paths) for s in self.slots}

    @cached_property
    def constant_names(self) -> Mapping[Value, str]:
        """Constant arrays at file scope and their names."""
        arguments = [a.c_name for e in self.entries for a in e.args]
        return constant_names([plan for e in self.entries for plan in e.plans], arguments, self.layers)

    @property
    def slot_places(self) -> Mapping[State, c.Expr]:
        """The memory of every state."""
        return {s.state: c.Member(s.owner, s.c_name) for s in self.slots}
