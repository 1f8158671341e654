"""Details of single steps and values for the records of an entry, read from the plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..errors import counted
from ..ir.liveness import strip_of
from ..ir.names import name_of
from ..ir.node import Node, Value
from ..ir.op_kinds import Fused, View
from ..lowering.plan import EntryPlan, PlacedBuffer, PlannedStep, ScanPlan
from ..lowering.step_order import computing
from .data import AGAIN, Again, Strips


def function_of(node: Node) -> str:
    """The outermost function whose call created a node; the name of the op if there was no call, as for imported
    nodes."""
    call = node.origin.call
    while call is not None and call.within is not None:
        call = call.within
    return node.op.name if call is None else call.function


def use_of(v: Value, phase: str) -> str:
    inside = v.node.regions[0].results[v.index].base if isinstance(v.node.op.lower, Fused) else v
    return AGAIN if inside.node.origin.recomputed else phase


def strips_of(plan: EntryPlan) -> Iterator[Strips]:
    """The regions of the plan that are computed in strips, in the order of their first steps."""
    regions: dict[int, list[tuple[int, PlannedStep]]] = {}
    for step in plan.steps:
        if (strip := strip_of(computing(step))) is not None:
            regions.setdefault(strip[0], []).append((strip[1], step))
    for found in regions.values():
        steps = [step for _, step in found]
        layers = dict.fromkeys(n.origin.scope for s in steps for n in computing(s) if n.origin.scope)
        numbers = str(steps[0].number), str(steps[-1].number)
        yield Strips(1 + max(k for k, _ in found), *numbers, tuple(layers))


def loops_of(step: PlannedStep) -> str:
    if isinstance(step.inner, ScanPlan):
        if step.inner.samples:
            return f"a loop over micro-batches of {step.inner.samples} with its own steps"
        return f"a loop of {counted(step.inner.times, 'iteration')} with its own steps"
    return "loops" if step.inner is None else "a branch with its own steps"


def type_of(v: Value, b: PlacedBuffer) -> str:
    if b.owner is None:
        return repr(v.type)
    return f"{v.type.dtype}[{','.join(map(repr, b.owner.scratch[v].shape))}]"


def again_of(step: PlannedStep, number: str, layers: Mapping[str, str]) -> list[tuple[Again, str]]:
    """The values of the forward pass that a step computes again and then uses, each with the name of the original.
    Values that are computed only for other recomputed values are left out: they take no memory either way."""
    inside = step.node.regions[0].nodes if step.nest is not None else [step.node]
    nodes = [n for n in inside if not isinstance(n.op.lower, View)]
    again = [n for n in nodes if n.origin.recomputed]
    used = {v.base for n in nodes if n not in again for v in n.operands}
    used |= {r.base for r in step.node.regions[0].results} if step.nest is not None else {*step.node.results}
    found = []
    for r in (r for n in again for r in n.results if r in used):
        label = r.node.origin.labels.get(r.index)
        original = name_of(label.copy_of, layers) if label is not None and label.copy_of is not None else ""
        found.append(
            (Again(number, name_of(r, layers), repr(r.type), r.type.bytes, r.node.origin.scope), original)
        )
    return found
