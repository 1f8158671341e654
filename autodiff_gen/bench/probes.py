"""What a benchmark tells apart in a program: the entries and their steps, each with its layer, phase and
multiply-accumulates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..codegen.files import step_text
from ..codegen.program import Program
from ..ir.graph import State
from ..ir.node import CONST, Value, base, topological
from ..ir.op_kinds import Call, Contraction, RowContraction
from ..ir.traits import is_sum
from ..ir.types import planned, planned_size
from ..lowering.plan import EntryPlan, ScanPlan, Step

FORWARD, BACKWARD, UPDATE, CALL = "forward", "backward", "update", "call"


@dataclass(frozen=True)
class Mark:
    """One thing that is counted. `step`: as the generated C numbers it; "" for what an entry does outside its steps."""

    id: int  # counts from 1 through the whole program
    entry: str
    step: str
    text: str  # what it computes
    phase: str
    layer: str  # of the parameters that it works with or leads to, as state_dict names it; "" where there is none
    macs: int  # multiply-accumulates for each call of the entry, with a full batch
    kernels: tuple[str, ...] = ()  # the symbols that it calls


def marks(program: Program) -> list[Mark]:
    """The marks of all entries, in the order of their ids."""
    found: list[Mark] = []
    for entry in program.entries:
        found.append(Mark(len(found) + 1, entry.name, "", "checks, call and return", CALL, "", 0))
        text = step_text(entry, program)
        for step in entry.plan.steps:
            text.lines(step)
        for number, step, times in _steps(entry.plan):
            top = entry.plan.steps[int(number.partition(".")[0]) - 1]
            kernels = dict.fromkeys(k.symbol for _, k in step.calls.values())
            found.append(
                Mark(
                    len(found) + 1,
                    entry.name,
                    number,
                    text.inside.said[number],
                    _phase(entry.plan, top),
                    _layer(entry.plan, top),
                    times * macs(step),
                    tuple(kernels),
                )
            )
    return found


def ids(found: Sequence[Mark]) -> Mapping[str, Mapping[str, int]]:
    """Ids by entry and step, as `emit` takes them."""
    out: dict[str, dict[str, int]] = {}
    for mark in found:
        if mark.step:
            out.setdefault(mark.entry, {})[mark.step] = mark.id
    return out


def _steps(
    plan: EntryPlan, prefix: str = "", start: int = 0, times: int = 1
) -> Iterator[tuple[str, Step, int]]:
    """As EntryPlan.all_steps, with how often each step is made; both parts of a condition count."""
    for step in plan.steps:
        number = f"{prefix}{start + step.number}"
        yield number, step, times
        for part in step.inner.parts if step.inner is not None else ():
            again = isinstance(step.inner, ScanPlan) and part is step.inner.body
            length = step.inner.length if isinstance(step.inner, ScanPlan) and again else 1
            yield from _steps(part.plan, f"{number}.", part.start, times * length)


# Multiply-accumulates


def macs(step: Step) -> int:
    """Multiply-accumulates of a step, of products and convolutions; padding and skipped zeros are counted as if they
    were computed."""
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
    if isinstance(lower, Call):
        total += sum(lower.macs(call) for call, _ in step.calls.values())
    return total


def _is_product(v: Value) -> bool:
    v = base(v)
    return v.node.op.powers == (1, 1) and all(
        planned_size(o.type.shape) > 1 and base(o).node.op is not CONST for o in v.node.operands
    )


# Layers and phases


def _states_read(plan: EntryPlan, step: Step) -> list[State]:
    found = [plan.states.get(base(v)) for v in step.node.operands]
    return [s for s in found if s is not None]


def _states_written(plan: EntryPlan, step: Step) -> list[State]:
    return [plan.states[r] for r in step.node.results if r in plan.states]


def _phase(plan: EntryPlan, step: Step) -> str:
    if any(s.role != "buffer" for s in _states_written(plan, step)):
        return UPDATE
    graph = plan.graph
    goals = [graph.outputs[k] for k in ("loss",) if k in graph.outputs and graph.updates]
    return FORWARD if step.node in set(topological(goals or list(graph.outputs.values()))) else BACKWARD


def _layer_of(state: State) -> str:
    """The module that a parameter belongs to: `0.weight` to `0`; a parameter without a module is a layer itself."""
    name = state.name.rpartition("/")[2]
    return name.rpartition(".")[0] or name


def _layer(plan: EntryPlan, step: Step) -> str:
    """The layer whose parameters the step writes or reads; else of the last layer that it comes behind in the forward
    pass, and in the backward pass the last layer that it leads to."""
    own = _own_layer(plan, step)
    if own:
        return own
    order = _layers(plan)
    if _phase(plan, step) == FORWARD:
        near = set(topological(step.node.operands)) if step.node.operands else set()
    else:
        near = {
            s.node
            for s in plan.steps
            if s.node is not step.node and step.node in set(topological(s.node.operands))
        }
    found = [order.index(_own_layer(plan, s)) for s in plan.steps if s.node in near and _own_layer(plan, s)]
    if found:
        return order[max(found)]
    return order[0] if order and _phase(plan, step) == FORWARD else ""


def _own_layer(plan: EntryPlan, step: Step) -> str:
    """Of the parameters that it writes, or whose moments it writes; else of those that it reads."""
    parameters = {s.name: s for s in plan.states.values() if s.role == "parameter"}
    for states in (_states_written(plan, step), _states_read(plan, step)):
        for s in states:
            of = s if s.role == "parameter" else parameters.get(s.name.rpartition(".")[0])
            if of is not None:
                return _layer_of(of)
    return ""


def _layers(plan: EntryPlan) -> list[str]:
    """All layers in the order of the forward pass."""
    order = [_own_layer(plan, s) for s in plan.steps if _phase(plan, s) == FORWARD]
    order += [_own_layer(plan, s) for s in plan.steps]
    return [name for name in dict.fromkeys(order) if name]
