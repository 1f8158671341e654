"""What a benchmark tells apart in a program: the entries and their steps, each with its layer, phase and
multiply-accumulates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..codegen.entries import step_comments
from ..codegen.program import Program
from ..ir.kernel_call import KernelCall
from ..ir.node import CONST, Value
from ..ir.op_kinds import Contraction, RowContraction
from ..ir.types import planned, planned_size
from ..ir.views import base
from ..lowering.phases import FORWARD, LOSS, Phases
from ..lowering.plan import EntryPlan, ScanPlan, Step

CALL = "call"


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
        comments = step_comments(entry, program)
        phases = Phases(entry.plan)
        for number, step, times in _steps(entry.plan):
            top = entry.plan.steps[int(number.partition(".")[0]) - 1]
            kernels = dict.fromkeys(k.symbol for _, k in step.calls.values())
            found.append(
                Mark(
                    len(found) + 1,
                    entry.name,
                    number,
                    comments[number].replace("\n", "; "),
                    FORWARD if (phase := phases.phase(top)) == LOSS else phase,
                    phases.layer(top),
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
    nodes = step.node.regions[0].nodes() if step.node.regions else [step.node]
    total = 0
    for node in nodes:
        if isinstance(node.op.lower, Contraction | RowContraction):
            total += planned_size(node.results[0].type.shape) * planned(node.operands[0].type.shape)[-1]
        elif node.op.name == "sum" and _is_product(node.operands[0]):
            total += planned_size(node.operands[0].type.shape)
    return total + sum(_of_call(call) for call, _ in step.calls.values() if call.shape)


def _is_product(v: Value) -> bool:
    v = base(v)
    return v.node.op.name == "mul" and all(
        planned_size(o.type.shape) > 1 and base(o).node.op is not CONST for o in v.node.operands
    )


def _of_call(call: KernelCall) -> int:
    """Of a convolution: every output element of the pooling or convolution sums over a window."""
    s, n = call.shape, planned((call.sizes.get("n", 1),))[0]
    if not call.kernel.startswith(("conv2d", "depthwise2d")):
        return 0
    window = s["kh"] * s["kw"]
    if call.kernel.startswith("depthwise2d"):
        return n * s["oh"] * s["ow"] * s["o"] * window
    pooled = call.kernel.startswith("conv2d_pool_")
    h, w = (s["ph"], s["pw"]) if pooled and call.kernel != "conv2d_pool_f32" else (s["oh"], s["ow"])
    return n * h * w * s["o"] * window * (s["c"] // s.get("groups", 1))
