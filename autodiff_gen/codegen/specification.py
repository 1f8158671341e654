"""The compiler's interface to a model and a function; the classes for users are in `model.model` and
`model.function`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ..ir.graph import Graph, State
from ..ir.module import IRModule


class FunctionSpec(Protocol):
    """A graph that becomes one C function; `batch` is the largest n that it takes."""

    name: str
    batch: int
    graph: Graph


class ModelSpec(Protocol):
    """Entries that share states. default_lr: the learning rate of train_step if the caller gives none, None if a
    schedule computes it; stages: results of the pipeline's stages up to the optimizer, by name; the other attributes
    are the same as `Model`'s."""

    batch: int
    guard: str | None
    split: bool
    restore_after: int

    @property
    def stages(self) -> Sequence[tuple[str, IRModule[Graph]]]: ...
    @property
    def states(self) -> Sequence[State]: ...
    @property
    def frozen(self) -> Mapping[str, Any]: ...
    @property
    def state_names(self) -> Sequence[str]: ...
    @property
    def tied(self) -> Mapping[str, str]: ...
    @property
    def default_lr(self) -> float | None: ...
    @property
    def program_id(self) -> int: ...
    def entries(self, guard: str | None = "") -> Sequence[Graph]: ...
