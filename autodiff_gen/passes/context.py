"""The arguments of all stages of the pipeline: the target, how the model is trained, and analyses."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..ir.graph import Graph, State
from ..ir.node import Node, Value
from ..kernels.registry import Backends, host_cost
from ..optim import EMA, Optimizer
from ..optim.lr_scheduler import LRScheduler
from ..optim.optimizer import Group
from ..targets.cost_table import CostTable
from .work import work

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Training:
    """How a model is trained; the arguments of `Model` by their names.

    trained: the parameters that the optimizer changes, with their old values; groups: which of them share options;
    lr: the argument of the entries that make a step, None where a schedule computes it.
    """

    trained: Sequence[tuple[State, Value]]
    optimizer: Optimizer
    groups: Sequence[Group]
    lr: Value | None
    schedule: LRScheduler | None = None
    clip_grad_norm: float | None = None
    clip_grad_value: float | None = None
    accumulate: str | None = None
    ema: EMA | None = None
    guard: str | None = None


@dataclass
class Context:
    """training: None for functions and for the bodies of loops, which are not differentiated; backends: the target's
    kernels and properties, None until the target is known; first: outputs that are complete before any other step
    begins; verified: the nodes that have been checked, with their operands."""

    training: Training | None = None
    backends: Backends | None = None
    first: Collection[str] = ()
    verified: dict[Node, tuple[Value, ...]] = field(default_factory=dict)
    lower_region: Callable[[Graph], Any] | None = None  # set by the pipeline: a region's graph to its plan
    bytes_after: Callable[[str, Graph], int] | None = (
        None  # set by the pipeline: of the arena, from a stage's result
    )
    analyses: dict[Hashable, Any] = field(default_factory=dict)

    def analysis(self, key: Hashable, compute: Callable[[], T]) -> T:
        """The result of an analysis of something that never changes, computed once for all stages."""
        if key not in self.analyses:
            self.analyses[key] = compute()
        result: T = self.analyses[key]
        return result

    def is_worth_its_time(self, stage: str, new: Graph, old: Graph) -> bool:
        """Whether `new` in place of `old`, as the result of a stage, takes so much less of the arena that it may take
        its time, by the cost table; true until the target is known."""
        measured = self.bytes_after
        if self.backends is None or measured is None:
            return True
        if not self.cost.memory:
            return False
        takes = work(old.nodes, self.cost)
        more = max(work(new.nodes, self.cost) - takes, 0.0) / takes
        before, after = (
            self.analysis((stage, graph), functools.partial(measured, stage, graph)) for graph in (old, new)
        )
        return after < before and more <= self.cost.memory * (before - after) / before

    @property
    def cost(self) -> CostTable:
        """What operations cost on the target; on the host, until the target is known."""
        return host_cost() if self.backends is None else self.backends.cost

    @property
    def target(self) -> Backends:
        assert self.backends is not None, "kernels are selected for a target"
        return self.backends
