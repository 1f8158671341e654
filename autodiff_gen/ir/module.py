"""A program between two stages of the pipeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from .graph import State
from .node import Value

Entry = TypeVar("Entry")
Next = TypeVar("Next")


@dataclass(frozen=True, eq=False)
class IRModule(Generic[Entry]):
    """The entries of a program: graphs, and from kernel selection on plans over graphs.

    stored: for each state that is stored in another order than the model gives it, the old value of the stored state.
    """

    entries: tuple[Entry, ...]
    stored: Mapping[State, Value] = field(default_factory=dict)

    def map(self, stage: Callable[[Entry], Next]) -> IRModule[Next]:
        """The module with `stage` applied to every entry."""
        return IRModule(tuple(map(stage, self.entries)), self.stored)

    def with_entries(self, *entries: Entry) -> IRModule[Entry]:
        return replace(self, entries=entries)

    def old_value(self, old: Value) -> Value:
        """The old value of the stored state, given the old value of the model's state."""
        return self.stored.get(old.node.attrs["state"], old)

    def state(self, state: State) -> State:
        """The state that is stored for a state of the model."""
        found = self.stored.get(state)
        return state if found is None else found.node.attrs["state"]
