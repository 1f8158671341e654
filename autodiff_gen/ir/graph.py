"""States and graphs: the form in which a model travels from the model file to C."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from .node import INPUT, STATE, Node, Op, Value, base, topological, users
from .op_kinds import Leaf, Lowering, View
from .parameter_layout import PartialStorage, Storage
from .printer import show
from .types import Type, varies


@dataclass(frozen=True)
class Check:
    """No element of `value`, an expression of inputs, may be outside `low` to `high`."""

    value: Value
    low: int
    high: int


ROLES = ("parameter", "buffer", "counter", "optimizer")  # the purposes of states
ADDED = "added"  # marks fields that are newer than version 0.1.0 (ir/canonical_text.py)
NORMS = {"l1": 1, "l2": 2}  # the power of the magnitudes that are added


@dataclass(frozen=True)
class Channels:
    """The channels of a parameter that train, along an axis of its logical shape: by index, or as a fraction, which
    chooses the channels with the largest norm, of NORMS."""

    axis: int
    chosen: float | tuple[int, ...]
    norm: str = field(default="l1", metadata={ADDED: True})

    def index(self, values: Any) -> tuple[int, ...]:
        """The indices of the channels in ascending order, for a parameter that begins with these values."""
        if isinstance(self.chosen, tuple):
            return tuple(sorted(self.chosen))
        numbers = np.moveaxis(np.asarray(values, np.float64), self.axis, 0)
        sums = (np.abs(numbers.reshape(len(numbers), -1)) ** NORMS[self.norm]).sum(1)
        count = max(1, round(self.chosen * len(sums)))
        return tuple(sorted(int(i) for i in np.argsort(-sums, kind="stable")[:count]))


@dataclass(frozen=True, eq=False)
class State:
    """A named piece of memory that outlives a call: a parameter, running statistics, an optimizer moment.

    `init` is an initialiser of `init.py` or an array; `trainable` says whether `Model` computes its gradient, and
    `channels` restricts the gradient to some channels; `channel_axis` is the logical axis of the channels that its
    layer can train in part, None without one. They, and the name, change by `edit` until a model is built of it: then
    it is `fixed`. Parameters are given to optimizers; buffers and counters change as a forward pass says
    (`with_updates`). Graphs and generated code see `type`; with a `storage` that is the shape in which the elements are
    stored, while `init`, `state_dict` and everything that users see keep the `logical` one."""

    name: str
    type: Type
    init: Any
    trainable: bool = True
    role: str = "parameter"
    storage: Storage | PartialStorage | None = None
    fixed: bool = False
    channels: Channels | None = None
    channel_axis: int | None = None
    aliases: tuple[str, ...] = ()  # its other names in a state_dict, where several modules share it

    @property
    def logical(self) -> Type:
        """The type as the model gives it."""
        if self.storage is None:
            return self.type
        if isinstance(self.storage, PartialStorage):
            return Type(self.type.dtype, self.storage.logical, self.storage.quantization)
        return self.type.moved(self.storage.restored, self.storage.logical)

    def edit(self, **changes: Any) -> None:
        """Change the name, `aliases`, `init`, `trainable`, `channels` or `channel_axis`; nothing else writes to a
        state. Graph values refer to the state of a parameter before its name is known, which is its path in the
        outermost module that holds it, and before the user loads weights or freezes it."""
        known = {"name", "aliases", "init", "trainable", "channels", "channel_axis"}
        assert not self.fixed and changes.keys() <= known, (self.name, changes)
        for name, value in changes.items():
            object.__setattr__(self, name, value)

    def fix(self) -> None:
        """A model is built of it: no change from now on."""
        object.__setattr__(self, "fixed", True)

    def stored(self, array: Any) -> Any:
        """An array of the logical shape as it is stored."""
        return array if self.storage is None else self.storage.stored(array)

    def restored(self, array: Any) -> Any:
        """The inverse of `stored`."""
        return array if self.storage is None else self.storage.restored(array)


@dataclass(frozen=True, eq=False)
class Graph:
    """One entry function in SSA form: inputs and old states -> outputs and new states.

    least_n: the fewest samples that it takes, where the batch may vary.
    training: whether layers that differ between training and evaluation will be resolved for training.
    `inner`: the body of a loop or a branch of a condition, whose memory is another plan's.
    guard: "loss": inputs and loss are checked before the first state changes (dependences.guarded); "gradients": so is
    `bound`, a scalar that is finite only if all new states are (passes/training/finite_guard.py); None: nothing is.
    checks: the indices that a call compares with limits before its first step (passes/training/check_indices.py).
    """

    name: str
    inputs: tuple[Value, ...]
    outputs: Mapping[str, Value]
    updates: Mapping[State, Value] = field(default_factory=dict)
    least_n: int = 1
    training: bool = False
    inner: bool = False
    guard: str | None = None
    bound: Value | None = None
    checks: tuple[Check, ...] = ()

    @property
    def roots(self) -> tuple[Value, ...]:
        bound = () if self.bound is None else (self.bound,)
        return (*self.outputs.values(), *self.updates.values(), *bound)

    @cached_property
    def outside_arena(self) -> Set[Value]:
        """The values that the roots show: outputs and new states, which are stored outside the arena, and `bound`."""
        return frozenset(v.base for v in self.roots)

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """Every node that the roots need, operands first; the order depends only on the graph."""
        return tuple(topological(self.roots))

    @cached_property
    def _by_lowering(self) -> Mapping[type[Lowering], Sequence[Node]]:
        found: dict[type[Lowering], list[Node]] = {}
        for node in self.nodes:
            found.setdefault(type(node.op.lower), []).append(node)
        return found

    def of(self, *kinds: type[Lowering]) -> list[Node]:
        """The nodes whose ops become C in one of these ways, one kind after the other."""
        return [node for kind in kinds for node in self._by_lowering.get(kind, ())]

    @cached_property
    def users(self) -> Mapping[Value, Sequence[Node]]:
        """For each value the nodes that read it, once per use."""
        return users(self.nodes)

    def readers(self, v: Value) -> Iterator[Node]:
        """The nodes, except views, that read a value or a view of it, once per use."""
        pending = [*self.users.get(v, ())]
        for node in pending:
            if isinstance(node.op.lower, View):
                pending += self.users.get(node.results[0], ())
            else:
                yield node

    @cached_property
    def written_by(self) -> Mapping[Node, Mapping[State, int]]:
        """For each node that computes new states, the index of the result that is stored in each state, itself or
        through views."""
        out: dict[Node, dict[State, int]] = {}
        for state, new in self.updates.items():
            out.setdefault(base(new).node, {})[state] = base(new).index
        return out

    @property
    def states(self) -> tuple[State, ...]:
        """Every state that is read or written, in order of first use."""
        found = {v.node.attrs["state"]: None for v in self.leaves(STATE)}
        return (*found, *(s for s in self.updates if s not in found))

    def leaves(self, op: Op) -> list[Value]:
        """The inputs, states or constants that the graph reads, in order of first use."""
        return [n.results[0] for n in self.of(Leaf) if n.op is op]

    def __str__(self) -> str:
        return show(self)

    def with_roots(self, roots: Sequence[Value]) -> Graph:
        """The same entry with its outputs, updates and bound replaced, in the order of `roots`."""
        if tuple(roots) == self.roots:
            return self
        k, end = len(self.outputs), len(self.outputs) + len(self.updates)
        return replace(
            self,
            outputs=dict(zip(self.outputs, roots[:k], strict=True)),
            updates=dict(zip(self.updates, roots[k:end], strict=True)),
            bound=roots[end] if self.bound is not None else None,
        )

    def with_read_inputs(self) -> Graph:
        """The same entry with only the inputs that a root depends on, and one input that tells the number of samples
        where a root follows it."""
        read = {node for node in self.nodes if node.op is INPUT}
        telling = [v for v in self.inputs if varies(v.type.shape)]
        if any(varies(v.type.shape) for v in self.roots) and not any(v.node in read for v in telling):
            read |= {v.node for v in telling[:1]}
        return replace(self, inputs=tuple(v for v in self.inputs if v.node in read))
