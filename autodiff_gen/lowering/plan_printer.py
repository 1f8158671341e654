"""Plans as text, for `--dump`: steps with their kernels, then the arena."""

from __future__ import annotations

from ..ir.printer import show
from .plan import EntryPlan


def show_plan(plan: EntryPlan) -> str:
    """The graph, a line for each step, and where every buffer is stored once that is decided."""
    lines = [show(plan.graph)]
    for number, step in plan.all_steps():
        kernels = ", ".join(kernel.symbol for _, kernel in step.calls.values())
        results = ", ".join(repr(r.type) for r in step.node.results)
        lines.append(f"step {number}: {kernels or step.node.op.name} -> {results}")
    for b in plan.placed:
        what = ", ".join(repr(v) for v in b.values) or f"the arena of step {b.start}"
        lines.append(f"{b.pool} arena + {b.offset}: {b.bytes} bytes, steps {b.start} to {b.end}: {what}")
    return "\n".join(lines) + "\n"
