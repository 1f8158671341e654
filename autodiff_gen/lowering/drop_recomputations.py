"""Drop recomputations: drop a step if an earlier step has computed the same results, and these are still in the arena
until the last read of the later ones. The readers read the earlier results.

    2: silu(x)        arena + 0, steps 2 to 3        2: silu(x)        arena + 0, steps 2 to 6
    3: matmul(%2, w)  arena + 64                     3: matmul(%2, w)  arena + 64
    5: silu(x)        arena + 0, steps 5 to 6   ->   5: matmul(%2, v)  arena + 128
    6: matmul(%5, v)  arena + 128

Earlier stages compute a value again for later readers. Only after buffers are assigned is it known whether the first
result is still in its memory. The arena does not grow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..ir.node import Node, Value
from ..ir.op_kinds import Fused
from ..ir.traits import key_of
from ..passes.context import Context
from .control_flow import over_operands
from .plan import EntryPlan, PlannedStep
from .planner import assign_buffers


def drop_recomputations(plan: EntryPlan, context: Context) -> EntryPlan:
    """A step whose results an earlier step has computed, and which are still in the arena, is dropped:

    2: silu(x), 5: silu(x), 6: matmul(%5, v)  ->  2: silu(x), 6: matmul(%2, v)
    """
    kept = set[Value]()  # without their steps the arena would grow
    while True:
        for step, same in _repeated(plan):
            if kept.isdisjoint(same):
                new = assign_buffers(_without(plan, step, same), context)
                if _peak(new) <= _peak(plan):
                    break
                kept.update(same)
        else:
            break
        plan = new
    return plan


def _peak(plan: EntryPlan) -> int:
    return sum(p.peak for p in plan.plans.values())


def _repeated(plan: EntryPlan) -> Iterator[tuple[PlannedStep, dict[Value, Value]]]:
    """Steps whose results earlier steps have computed, with the earlier result, still intact, of each."""
    number = _numbered(plan.graph.nodes, {}, {})
    buffers = {v: b for b in plan.placed if b.owner is None for v in b.values}
    writer = {r: s.number for s in plan.steps for r in s.node.results}
    last = {v.base: s.number for s in plan.steps for v in s.node.operands}
    earlier: dict[object, list[Value]] = {}

    def is_intact(v: Value, again: Value) -> bool:
        """Whether v stays as it is until the last read of `again`."""
        first, end = writer[v], max(last.get(again, 0), writer[again])
        place, other = buffers[v], buffers[again]
        for b in plan.placed:
            apart = b.offset >= place.offset + v.type.bytes or place.offset >= b.offset + b.bytes
            if b.arena_name != place.arena_name or apart:
                continue
            in_its_place = b.root is other.root and b.offset == place.offset
            written = [writer[u] for u in b.values if u not in (v, again)] if b.owner is None else [b.start]
            if any(first < at < end or (at == end and not in_its_place) for at in written):
                return False
        return True

    for step in plan.steps:
        results = [r for r in step.node.results if r in buffers]
        same: dict[Value, Value] = {}
        for r in results if len(results) == len(step.node.results) else ():
            equal = (v for v in reversed(earlier.get(number[r], [])) if v.type == r.type and is_intact(v, r))
            same.update((r, v) for v in [next(equal, None)] if v is not None)
        if results and len(same) == len(step.node.results):
            yield step, same
        for r in results:
            earlier.setdefault(number[r], []).append(r)


def _numbered(nodes: Iterable[Node], number: dict[Value, int], known: dict[Any, int]) -> dict[Value, int]:
    """A number for each value, equal for values that the same ops compute from the same leaves. number: the numbers of
    values so far, to which the others are added; known: numbers by op and operands."""
    for node in nodes:
        operands = tuple([number[v] for v in node.operands])
        if isinstance(node.op.lower, Fused):
            (region,) = node.regions
            inside = dict(zip(region.params, operands, strict=True))
            _numbered(region.nodes, inside, known)
            number.update((r, inside[v]) for r, v in zip(node.results, region.results, strict=True))
        else:
            key = key_of(node, operands)
            number.update((r, known.setdefault((key, r.index), len(known))) for r in node.results)
    return number


def _without(plan: EntryPlan, dropped: PlannedStep, same: Mapping[Value, Value]) -> EntryPlan:
    """The plan without a step, whose readers read other values, and without the steps that only it needs."""
    new, nodes = dict(same), dict[Node, Node]()
    for node in plan.graph.nodes:
        if node is not dropped.node and not new.keys().isdisjoint(node.operands):
            nodes[node] = node.with_operands(tuple([new.get(v, v) for v in node.operands]))
            new.update(zip(node.results, nodes[node].results, strict=True))

    def now(v: Value) -> Value:
        return new.get(v, v)

    graph = plan.graph.with_roots([now(v) for v in plan.graph.roots])
    needed = {*graph.nodes}
    steps = [
        replace(
            s,
            node=nodes.get(s.node, s.node),
            inner=s.inner and over_operands(s.inner, {v: now(v) for v in s.node.operands}),
            calls={nodes.get(n, n): call for n, call in s.calls.items()},
            memory={nodes.get(n, n): v for n, v in s.memory.items()},
        )
        for s in plan.steps
        if nodes.get(s.node, s.node) in needed
    ]
    for number, s in enumerate(steps, start=1):
        s.number = number
    states = {now(v): state for v, state in plan.states.items()}
    return replace(
        plan,
        graph=graph,
        steps=steps,
        states=states,
        outputs={now(v): name for v, name in plan.outputs.items()},
    )
