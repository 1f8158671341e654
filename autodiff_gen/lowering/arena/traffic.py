"""How many bytes the steps of an entry read and write of each value and of the memory of its loops and branches.

A step reads each operand once and writes each result once; a call of a product reads as many elements of its two
factors as it has multiply-accumulates, since it loads a factor again for every tile of the other. The steps of a loop
count once for each iteration.
"""

from __future__ import annotations

from collections import Counter

from ...ir.graph import State
from ...ir.liveness import pool_of
from ...ir.node import Node, Value, base
from ...ir.op_kinds import KernelOp
from ...ir.traits import macs
from ..plan import EntryPlan, InnerPlan, PlacedBuffer, PlannedStep, ScanPlan

Bytes = Counter[Value]
Memory = Counter[tuple[PlannedStep, str]]  # of the memory for the steps inside a step, by pool


def traffic(plan: EntryPlan) -> tuple[Bytes, Memory]:
    """Bytes that one call of the entry moves, by value and for the memory of loops and branches."""
    values, memory = Bytes(), Memory()
    for step in plan.steps:
        for v, size in _reads(step.node) if step.inner is None else ():
            values[base(v)] += size
        for r in step.node.results if step.inner is None else ():
            values[r] += r.type.bytes
        for part in step.inner.parts if step.inner is not None else ():
            times = step.inner.times if isinstance(step.inner, ScanPlan) and part is step.inner.body else 1
            _add_inside(part, step, times, values, memory)
    return values, memory


def of_buffer(b: PlacedBuffer, values: Bytes, memory: Memory) -> int:
    """Bytes that the steps move to and from a buffer."""
    if b.owner is not None:
        return 2 * b.bytes if b.values else memory[b.owner, b.pool]
    return sum(values[v] for v in b.values)


def of_states(plan: EntryPlan, values: Bytes) -> Counter[State]:
    """Bytes that the steps move of each state, old and new values together."""
    found: Counter[State] = Counter()
    for v, state in plan.states.items():
        found[state] += values[v]
    return found


def _reads(node: Node) -> list[tuple[Value, int]]:
    products = macs(node) if isinstance(node.op.lower, KernelOp) else 0
    return [
        (v, max(v.type.bytes, products * v.type.dtype.size if k < 2 else 0))
        for k, v in enumerate(node.operands)
    ]


def _add_inside(part: InnerPlan, step: PlannedStep, times: int, values: Bytes, memory: Memory) -> None:
    """Add the traffic of the steps inside: to the outer value that stores a value, else to the memory of the step."""
    inside, deeper = traffic(part.plan)
    homes: dict[Value, State | str] = {**part.plan.states, **part.plan.outputs}
    results: dict[State | str, Value] = {w.key: step.node.results[w.index] for w in part.written}
    outer = {b.inner: base(b.outer) for b in part.bound}
    for v, size in inside.items():
        home = outer[v] if v in outer else results.get(homes.get(v, ""))
        if home is not None:
            values[home] += times * size
        elif v.node.operands or v in part.plan.states:
            memory[step, pool_of(v)] += times * size
    for (_, pool), size in deeper.items():
        memory[step, pool] += times * size
