"""States and graphs: the form in which a model travels from the model file to C."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .node import STATE, Op, Value, topological
from .parameter_layout import Storage
from .types import Type

ROLES = ("parameter", "buffer", "counter", "optimizer")  # what states are for


@dataclass(eq=False)
class State:
    """A named piece of memory that outlives a call: a parameter, running statistics, an optimizer moment.

    `init` is an initialiser of `init.py` or an array; `trainable` says whether `Model` asks for its gradient. Modules
    may change both, and the name, until a model is built of it: then it is `fixed`.
    Parameters are given to optimizers; buffers and counters change as a forward pass says (`with_updates`).
    Graphs and generated code see `type`; with a `storage` that is the shape in which the elements lie in memory,
    while `init`, `state_dict` and everything that users see keep the `logical` one.
    """

    name: str
    type: Type
    init: Any
    trainable: bool = True
    role: str = "parameter"
    storage: Storage | None = None
    fixed: bool = False

    @property
    def logical(self) -> Type:
        """The type as the model gives it."""
        return self.type if self.storage is None else Type(self.type.dtype, self.storage.logical)

    def stored(self, array: Any) -> Any:
        """An array of the logical shape as it lies in memory."""
        return array if self.storage is None else self.storage.stored(array)

    def restored(self, array: Any) -> Any:
        """The inverse of `stored`."""
        return array if self.storage is None else self.storage.restored(array)


@dataclass(frozen=True, eq=False)
class Graph:
    """One entry function in SSA form: inputs and old states -> outputs and new states.

    least_n: the fewest samples that it takes, where the batch may vary.
    `inner`: the body of a loop or a branch of a condition, whose memory is another plan's.
    guard: "loss": inputs and loss are checked before the first state changes (donation.guarded); "gradients": so is
    `proof`, a scalar that is finite only if all new states are (passes/finite_guard.py); None: nothing is.
    """

    name: str
    inputs: tuple[Value, ...]
    outputs: Mapping[str, Value]
    updates: Mapping[State, Value] = field(default_factory=dict)
    least_n: int = 1
    inner: bool = False
    guard: str | None = None
    proof: Value | None = None

    @property
    def roots(self) -> tuple[Value, ...]:
        proof = () if self.proof is None else (self.proof,)
        return (*self.outputs.values(), *self.updates.values(), *proof)

    @property
    def states(self) -> tuple[State, ...]:
        """Every state that is read or written, in order of first use."""
        found = {v.node.attrs["state"]: None for v in self.leaves(STATE)}
        return (*found, *(s for s in self.updates if s not in found))

    def leaves(self, op: Op) -> list[Value]:
        """The inputs, states or constants that the graph reads, in order of first use."""
        return [n.results[0] for n in topological(self.roots) if n.op is op]

    def with_roots(self, roots: Sequence[Value]) -> Graph:
        """The same entry with its outputs, updates and proof replaced, in the order of `roots`."""
        k, end = len(self.outputs), len(self.outputs) + len(self.updates)
        return replace(
            self,
            outputs=dict(zip(self.outputs, roots[:k], strict=True)),
            updates=dict(zip(self.updates, roots[k:end], strict=True)),
            proof=roots[end] if self.proof is not None else None,
        )
