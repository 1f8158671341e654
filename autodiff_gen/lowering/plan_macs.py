"""The multiply-accumulates of a plan: of its matrix products and convolutions; padding and skipped zeros count."""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.node import CONST, Value, base
from ..ir.op_kinds import Contraction, KernelOp, RowContraction
from ..ir.traits import is_sum
from ..ir.types import planned, planned_size
from .plan import EntryPlan, PlannedStep, ScanPlan


def steps_with_times(
    plan: EntryPlan, prefix: str = "", start: int = 0, times: int = 1
) -> Iterator[tuple[str, PlannedStep, int]]:
    """EntryPlan.all_steps with the trip count of each step; both branches of a cond count."""
    for step in plan.steps:
        number = f"{prefix}{start + step.number}"
        yield number, step, times
        for part in step.inner.parts if step.inner is not None else ():
            again = isinstance(step.inner, ScanPlan) and part is step.inner.body
            length = step.inner.times if isinstance(step.inner, ScanPlan) and again else 1
            yield from steps_with_times(part.plan, f"{number}.", part.start, times * length)


def macs(step: PlannedStep) -> int:
    """The multiply-accumulates of one step, without the steps inside of it."""
    if step.inner is not None:
        return 0  # its own steps have them
    nodes = step.node.regions[0].nodes if step.node.regions else [step.node]
    total = 0
    for node in nodes:
        if isinstance(node.op.lower, Contraction | RowContraction):
            total += planned_size(node.results[0].type.shape) * planned(node.operands[0].type.shape)[-1]
        elif is_sum(node) and _is_product(node.operands[0]):
            total += planned_size(node.operands[0].type.shape)
    lower = step.node.op.lower
    if isinstance(lower, KernelOp):
        total += sum(lower.macs(call) for call, _ in step.calls.values())
    return total


def macs_of(plan: EntryPlan) -> int:
    """The multiply-accumulates of one call of the entry, with a full batch."""
    return sum(times * macs(step) for _, step, times in steps_with_times(plan))


def _is_product(v: Value) -> bool:
    v = base(v)
    return v.node.op.powers == (1, 1) and all(
        planned_size(o.type.shape) > 1 and base(o).node.op is not CONST for o in v.node.operands
    )
