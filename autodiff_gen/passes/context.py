"""The arguments of all stages of the pipeline: the target, how the model is trained, and analyses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..ir.graph import State
from ..ir.node import Node, Value
from ..kernels.registry import Backends, host_cost
from ..optim import EMA, Optimizer
from ..optim.lr_scheduler import LRScheduler
from ..optim.optimizer import ParameterGroup
from ..targets.cost_table import CostTable

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Training:
    """How a model is trained; the arguments of `Model` by their names.

    trained: the parameters that the optimizer changes, with their old values; groups: which of them share options;
    lr: the argument of the entries that make a step, None where a schedule computes it.
    """

    trained: Sequence[tuple[State, Value]]
    optimizer: Optimizer
    groups: Sequence[ParameterGroup]
    lr: Value | None
    schedule: LRScheduler | None = None
    clip_grad_norm: float | None = None
    clip_grad_value: float | None = None
    accumulate: str | None = None
    ema: EMA | None = None
    guard: str | None = None


@dataclass
class Context:
    """training: None for functions and for the bodies of loops, which are not differentiated.
    backends: the target's kernels and properties, None until the target is known.
    first: outputs that are complete before any other step begins.
    budget: how many bytes of the arena an entry may take, None where that is not limited.
    slack: recomputation may leave the arena as large as this multiple of the budget, for strips to meet the budget.
    samples: the most samples of a micro-batch, None where the batch is not divided; mixed: why the batch of an entry
    cannot be divided, by the entry's name.
    over_budget: the names of entries that a stage had to change for the budget.
    verified: the nodes that have been checked, with their operands.
    analyses: results of analyses that are kept."""

    training: Training | None = None
    backends: Backends | None = None
    first: Collection[str] = ()
    budget: int | None = None
    slack: float = 1.0
    samples: int | None = None
    mixed: dict[str, str] = field(default_factory=dict)
    over_budget: set[str] = field(default_factory=set)
    verified: dict[Node, tuple[Value, ...]] = field(default_factory=dict)
    analyses: dict[Hashable, Any] = field(default_factory=dict)

    def analysis(self, key: Hashable, compute: Callable[[], T]) -> T:
        """The result of an analysis of something that never changes, computed once for all stages."""
        if key not in self.analyses:
            self.analyses[key] = compute()
        result: T = self.analyses[key]
        return result

    @property
    def cost(self) -> CostTable:
        """The costs of operations on the target; on the host, until the target is known."""
        return host_cost() if self.backends is None else self.backends.cost

    @property
    def weighs_memory(self) -> bool:
        """Whether passes may spend time to make the arena smaller."""
        return self.backends is not None and (self.budget is not None or bool(self.cost.memory))

    @property
    def target(self) -> Backends:
        assert self.backends is not None, "kernels are selected for a target"
        return self.backends
