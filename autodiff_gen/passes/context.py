"""The arguments of all stages of the pipeline: the target, how the model is trained, and analyses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..ir.graph import Graph, State
from ..ir.node import Node, Value
from ..ir.origin import Origin
from ..kernels.registry import Backends, host_cost
from ..optim import EMA, Optimizer
from ..optim.lr_scheduler import LRScheduler
from ..optim.optimizer import Group
from ..targets.cost_table import CostTable
from .work import work

T = TypeVar("T")

MOST_RESULTS = 100  # of stages that are kept, a limit of memory: about ten graphs and their plans


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


@dataclass(frozen=True)
class ArenaUse:
    """steps: the bytes that are alive at each step of an entry; values: when each value is alive, and its origin with
    its index among the results of its node; computed: the origins of the nodes that the step computes."""

    steps: Sequence[int]
    values: Sequence[tuple[range, tuple[Origin, int]]]
    computed: Sequence[Collection[Origin]] = ()

    @property
    def peak(self) -> int:
        """The most bytes that are alive at once."""
        return max(self.steps)

    @property
    def height(self) -> tuple[int, int]:
        """The peak, and how many steps reach it."""
        return _height(self.steps)

    def excess(self, budget: int) -> int:
        """The bytes over a budget, added up over all steps."""
        return sum(max(live - budget, 0) for live in self.steps)


def _height(steps: Sequence[int]) -> tuple[int, int]:
    peak = max(steps, default=0)
    return peak, steps.count(peak)


@dataclass
class Context:
    """training: None for functions and for the bodies of loops, which are not differentiated.
    backends: the target's kernels and properties, None until the target is known.
    first: outputs that are complete before any other step begins.
    budget: how many bytes of the arena an entry may take, None where that is not limited.
    slack: how many times the budget values that are computed again may leave for strips to meet.
    samples: the most that a micro-batch has, None where the batch is not divided; mixed: why the batch of an entry
    cannot be divided, by the entry's name.
    over_budget: the names of entries that a stage had to change for the budget.
    verified: the nodes that have been checked, with their operands.
    is_estimate: whether stages run for what the result of an earlier one needs, not for a plan.
    analyses, recent: results that are kept; of stages, the latest last.

    The pipeline sets how regions are lowered, and what is measured of the result of a stage, given by the stage's name
    and the graph. lower_region: a region's graph to its plan; memory_after: what each step takes; bound_after: what it
    takes at least, in whatever order; placed_after: the bytes of the arena, gaps included."""

    training: Training | None = None
    backends: Backends | None = None
    first: Collection[str] = ()
    budget: int | None = None
    slack: float = 1.0
    samples: int | None = None
    mixed: dict[str, str] = field(default_factory=dict)
    over_budget: set[str] = field(default_factory=set)
    verified: dict[Node, tuple[Value, ...]] = field(default_factory=dict)
    is_estimate: bool = False
    lower_region: Callable[..., Any] | None = None
    memory_after: Callable[[str, Graph], ArenaUse] | None = None
    bound_after: Callable[[str, Graph], list[int]] | None = None
    placed_after: Callable[[str, Graph], int] | None = None
    analyses: dict[Hashable, Any] = field(default_factory=dict)
    recent: dict[Hashable, Any] = field(default_factory=dict)

    def analysis(self, key: Hashable, compute: Callable[[], T]) -> T:
        """The result of an analysis of something that never changes, computed once for all stages."""
        if key not in self.analyses:
            self.analyses[key] = compute()
        result: T = self.analyses[key]
        return result

    def stage_result(self, stage: Hashable, entry: Any, weighs: bool, compute: Callable[[], T]) -> T:
        """The result of a stage for an entry: the measured one where this has been run before, for its memory. weighs:
        whether it depends on how memory is weighed."""
        key = stage, entry, self.weighing if weighs else None, tuple(self.first)
        result: T = self.recent.pop(key) if key in self.recent else compute()
        self.recent[key] = result
        if len(self.recent) > MOST_RESULTS:
            del self.recent[next(iter(self.recent))]
        return result

    @property
    def weighing(self) -> Hashable:
        """How memory is weighed: what is planned may differ where this does."""
        return self.budget, self.slack, self.samples, self.is_estimate

    @property
    def weighs_memory(self) -> bool:
        """Whether some of the time is given for a smaller arena, so that the entries' memory is measured."""
        known = self.backends is not None and self.memory_after is not None
        return known and (self.budget is not None or bool(self.cost.memory))

    def is_worth_its_time(self, stage: str, new: Graph, old: Graph) -> bool:
        """Whether `new` in place of `old`, as the result of a stage, takes so much less of the arena that it may take
        its time: by the cost table, or in any case where `old` exceeds the budget; true until the target is known, and
        in an estimate, whose time would be the square of a stage's."""
        if self.backends is None or self.memory_after is None or self.is_estimate:
            return True
        excess = self.excess(stage, old)
        if not (excess or self.cost.memory):
            return False
        before = self.memory(stage, old).peak
        if excess:
            least, _ = self.least_peak(stage, new)
            return least <= before and (self.memory(stage, new).peak, self.excess(stage, new)) < (
                before,
                excess,
            )
        takes = work(old.nodes, self.cost)
        more = max(work(new.nodes, self.cost) - takes, 0.0) / takes
        most = self.cost.memory
        return self._is_lower(
            stage, new, lambda peak: peak < before and more <= most * (before - peak) / before
        )

    def takes_less(self, stage: str, new: Graph, old: Graph) -> bool:
        """Whether `new`, as the result of a stage, takes less of the arena than `old`."""
        before = self.memory(stage, old).peak
        return self._is_lower(stage, new, lambda peak: peak < before)

    def takes_no_more(self, stage: str, new: Graph, old: Graph) -> bool:
        """Whether `new`, as the result of a stage, takes as much of the arena as `old` or less; false until the target
        is known, and in an estimate."""
        if self.backends is None or self.memory_after is None or self.is_estimate:
            return False
        before = self.memory(stage, old).peak
        return self._is_lower(stage, new, lambda peak: peak <= before) and not self.excess(stage, new)

    def _is_lower(self, stage: str, graph: Graph, test: Callable[[int], bool]) -> bool:
        """Whether the peak of the entry meets a test that a lower one meets as well; it is not measured where the least
        that it can be does not."""
        return test(self.least_peak(stage, graph)[0]) and test(self.memory(stage, graph).peak)

    def memory(self, stage: str, graph: Graph) -> ArenaUse:
        """What the entry takes of the arena, if `graph` is the result of a stage."""
        measured = self.memory_after
        assert measured is not None, "the pipeline has begun"
        return self.analysis((stage, graph), lambda: measured(stage, graph))

    def least_peak(self, stage: str, graph: Graph) -> tuple[int, int]:
        """No order of the steps has a lower peak, or with it fewer steps that reach it, if `graph` is the result of a
        stage; known sooner than `memory`."""
        bound = self.bound_after
        assert bound is not None, "the pipeline has begun"
        return _height(self.analysis((stage, graph, "bound"), lambda: bound(stage, graph)))

    def placed(self, stage: str, graph: Graph) -> int:
        """The bytes of the arena that the entry takes, gaps between buffers included, if `graph` is the result of a
        stage."""
        placed = self.placed_after
        assert placed is not None, "the pipeline has begun"
        return self.analysis((stage, graph, "placed"), lambda: placed(stage, graph))

    def excess(self, stage: str, graph: Graph) -> int:
        """By how many bytes the steps of the entry exceed the budget, all added up; 0 if it fits."""
        found = 0 if self.budget is None else self.memory(stage, graph).excess(self.budget)
        if found:
            self.over_budget.add(graph.name)
        return found

    def live_at_peak(self, stage: str, graph: Graph) -> list[Value]:
        """The values of the graph that are alive at the step that needs most, the largest first."""
        use = self.memory(stage, graph)
        peak = use.steps.index(use.peak)
        origins = {value for steps, value in use.values if peak in steps}
        found = [r for n in graph.nodes for r in n.results if (n.origin, r.index) in origins and r.base is r]
        return sorted(found, key=lambda v: -v.type.bytes)

    @property
    def cost(self) -> CostTable:
        """What operations cost on the target; on the host, until the target is known."""
        return host_cost() if self.backends is None else self.backends.cost

    @property
    def target(self) -> Backends:
        assert self.backends is not None, "kernels are selected for a target"
        return self.backends
