"""From a graph to steps: the calls and loop nests, their order, and the place of every value.

These are the last stages of the pipeline; codegen only writes these decisions as C.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

from ..ir.added_terms import added_to
from ..ir.build import make_input
from ..ir.dependences import state_of
from ..ir.graph import Graph, State
from ..ir.kernel_call import KernelCall
from ..ir.liveness import pool_of
from ..ir.node import STATE, Node, Value, base
from ..ir.op_kinds import Cond, Fused, Leaf, RowContraction, Scan, View
from ..ir.origin import Label
from ..ir.traits import is_free
from ..ir.types import Type
from ..ir.views import known_layout, layout, stored
from ..kernels.registry import Backends
from ..passes.calls.kernel_calls import call_in_place, call_of, is_gathered, row_call
from ..passes.context import Context
from ..passes.fusion.fuse_elementwise import fuse_elementwise
from ..passes.fusion.split_updates import split_updates
from ..passes.layout.copy_insertion import with_old_states_copied
from ..passes.loops.nesting import Scratch
from ..passes.loops.shared_nests import nest_of, own_values, region_of_nest
from .control_flow import plan_regions
from .loops.nest_accesses import NestAccesses
from .loops.statements import Statements
from .plan import EntryPlan, PlacedBuffer, PlannedStep, place_members
from .step_order import liveness_of_plan, reusable, scratch_of, uses_of

LowerRegion: TypeAlias = Callable[[Graph, int], EntryPlan]


def copy_overwritten_states(graph: Graph, context: Context) -> Graph:
    """Split updates off fused nodes that would overwrite a state before its last read; where that is impossible,
    insert snapshots of the old states.

    %0 = permute(w, dims=(1, 0))             %0 = permute(w, dims=(1, 0))
    %1 = fused(x, %0): sub(x, %0)     ->     %1 = fused(%0): copy(%0, snapshot=True)
    w' <- %1                                 %2 = fused(x, %1): sub(x, %1); w' <- %2
    """
    while late := _overwritten_too_early(graph, context):
        split = split_updates(graph, late)
        graph = fuse_elementwise(with_old_states_copied(graph, late) if split is graph else split, context)
    return graph


def select_kernels(graph: Graph, context: Context, lower: LowerRegion) -> EntryPlan:
    """A step for every node that computes: a call with its kernel, a loop nest, or a region with its own plan. lower:
    makes the plan of a region from its graph and the bytes of the budget that are taken.

    %0: f32[1,30] = matmul(x, a)  ->  step 0: ag_gemv_t_f32_ref -> f32[1,30]
    """
    states, outputs = _homes(graph)
    nodes = [n for n in graph.nodes if _is_step(n)]
    readers = Counter(source for n in nodes for source in {v.base for v in n.operands})
    arena = {r: readers[r] for n in nodes for r in n.results if r not in states and r not in outputs}
    steps = [_step(n, graph, context, arena, lower) for n in nodes]
    copies = sorted({s.name for n in graph.nodes for s in _copied_states(n)})
    return EntryPlan(graph, steps, states, outputs, [], {}, copies)


def schedule(plan: EntryPlan, context: Context) -> EntryPlan:
    """Order the steps so that the peak of live bytes is low: 0: a, 0: b, 0: tanh(a) -> 1: a, 2: tanh(a), 3: b. A call
    is in place only where that lowers the peak by more than the memory that its kernel needs for it."""
    use = liveness_of_plan(plan, context)
    steps = [plan.steps[i] for i in use.order]
    for number, s in enumerate(steps, start=1):
        s.number, own = number, sum(p.bytes for p in scratch_of(s))
        if s.in_place and use.alive[number - 1] + s.node.results[0].type.bytes <= use.peak + own:
            s.in_place, s.scratch, s.memory = False, {}, {}
            _give_kernel(s, s.node, call_of(s.node), context.target)
    return replace(plan, steps=steps)


def assign_buffers(plan: EntryPlan, context: Context) -> EntryPlan:
    """Give every value in the arena an offset: step 1 -> f32[30], read in step 3 -> arena + 0, steps 1 to 3."""
    placed = lifetimes(plan, context)
    unit = context.cost.alignment
    plans = {}
    for pool in ("float", "int"):
        members = [p for p in placed if p.pool == pool]
        plans[pool] = place_members(members, unit)
    return replace(plan, placed=placed, plans=plans)


def _copied_states(node: Node) -> list[State]:
    """The states whose old values a fused node copies."""
    out = []
    for region in node.regions if isinstance(node.op.lower, Fused) else ():
        outer = dict(zip(region.params, node.operands, strict=True))
        for v in map(base, region.results):
            source = base(v.node.operands[0]) if v.node.attrs.get("snapshot") else None
            state = state_of(outer[source]) if source in outer else None
            out += [state] if state is not None else []
    return out


def _is_step(node: Node) -> bool:
    return not isinstance(node.op.lower, (Leaf, View)) and not is_free(node)


# Loop nests and buffers that are reused


def _updated_in_place(graph: Graph, node: Node, context: Context) -> list[tuple[int, Value, Value]]:
    """(operand's index, param, result) where the result of a fused node is stored in the memory of a state that the
    operand shows; param and result belong to the nest.
    """
    region = region_of_nest(node, context)
    updated = {state: region.results[index] for state, index in graph.written_by.get(node, {}).items()}
    states = map(state_of, node.operands)
    return [
        (i, region.params[i], updated[state]) for i, state in enumerate(states) if state and state in updated
    ]


def _may_share(uses: NestAccesses, operand: Value, param: Value, result: Value) -> bool:
    at, whole = layout(operand), stored(result)
    if at is None:
        return uses.read_first(param, result)
    return uses.may_share(param, result) if at == whole else uses.may_share(param, result, at, whole)


def _statements(node: Node, graph: Graph, context: Context) -> Statements:
    """The statements of a fused node. A param that shows a state is loaded before a result takes its memory."""
    locked = frozenset(param for _, param, _ in _updated_in_place(graph, node, context))
    nest = nest_of(node, context)
    return context.analysis((Statements, nest, locked), lambda: Statements(nest, locked))


def _overwritten_too_early(graph: Graph, context: Context) -> list[tuple[Node, int]]:
    """Fused nodes, and which operand shows a state whose bytes the node overwrites before the last read."""
    late = []
    for node in graph.of(Fused):
        in_place = _updated_in_place(graph, node, context)
        if in_place:
            uses = uses_of(_statements(node, graph, context), context)
            late += [(node, i) for i, p, r in in_place if not _may_share(uses, node.operands[i], p, r)]
    return late


def _step(
    node: Node, graph: Graph, context: Context, arena: Mapping[Value, int], lower: LowerRegion
) -> PlannedStep:
    step, backends = PlannedStep(node), context.target
    if isinstance(node.op.lower, Scan | Cond):
        # the arena of a micro-batch is the entry's arena less the results
        taken = sum(r.type.bytes for r in node.results if r in arena) if "samples" in node.attrs else 0
        step.inner = plan_regions(node, graph, lambda region: lower(region, taken))
    elif node.regions:
        step.nest, step.statements = nest_of(node, context), _statements(node, graph, context)
        step.own = own_values(node, step.nest)
        step.scratch = {step.own.get(v, v): scratch for v, scratch in step.nest.scratch.items()}
        operand = dict(zip(step.nest.region.params, node.operands, strict=True))
        for inner in step.nest.roots:
            if isinstance(inner.op.lower, RowContraction):
                layouts = [known_layout(operand[v]) for v in inner.operands]
                block = step.nest.block_of(inner.results[0])
                _give_kernel(step, inner, row_call(inner, layouts, block), backends)
                if block is None and is_gathered(inner, layouts[0]):
                    row = make_input("row", Type(inner.operands[0].type.dtype, layouts[0].shape[1:]))
                    row.node.origin.labels[0] = Label(copy_of=operand[inner.operands[0]])
                    step.gathered[inner] = row
                    step.scratch[row] = Scratch(row, (), row.type.shape, row.type.dtype)
    else:
        in_place = call_in_place(node, arena, backends)
        step.in_place = in_place is not None
        _give_kernel(step, node, in_place or call_of(node), backends)
    return step


def _give_kernel(step: PlannedStep, node: Node, call: KernelCall, backends: Backends) -> None:
    """The kernel that computes a node of the step, and the memory that it needs."""
    kernel = backends.select(call.kernel, call.facts())
    step.calls[node] = call, kernel
    if (size := call.scratch(kernel.scratch)) and not kernel.scratch_optional:
        step.give_memory(node, size)


# Homes, order, lifetimes


def _homes(graph: Graph) -> tuple[dict[Value, State], dict[Value, str]]:
    states = {v: v.node.attrs["state"] for v in graph.leaves(STATE) if v not in graph.inputs}
    states.update({new.base: state for state, new in graph.updates.items()})
    return states, {v.base: name for name, v in graph.outputs.items()}


def lifetimes(plan: EntryPlan, context: Context) -> list[PlacedBuffer]:
    """Buffers with lifetimes; a result reuses the buffer of an operand that dies in its step, or of another result of
    the step that no later step reads, where the loops allow it.
    """
    steps, states, outputs = plan.steps, plan.states, plan.outputs
    last: dict[Value, int] = {}
    for s in steps:
        for v in s.node.operands:
            last[v.base] = s.number
    holder: dict[Value, PlacedBuffer] = {}
    placed: list[PlacedBuffer] = []
    for s in steps:
        candidates, old = reusable(s, context), added_to(s.node)
        for r in s.node.results:
            if r in states or r in outputs:
                assert old is None or old.base in states, "a kernel adds to the memory of its result"
                continue
            end = max(last.get(r, 0), s.number)
            dying = [v for v in candidates.get(r, ()) if last.get(v, s.number) == s.number and v in holder]
            dying.sort(
                key=lambda v: v.node is not s.node
            )  # nothing else may be in the memory of another result
            free = [holder[v] for v in dying if holder[v].end == s.number and holder[v].values[-1] is v]
            assert free or old is None or old.base in states, "a kernel adds to an operand that dies"
            if free:
                reused = free[0]
                if r.type.bytes < reused.bytes:
                    holder[r] = PlacedBuffer(
                        [r], None, r.type.bytes, s.number + 1, end, reused.pool, over=reused
                    )
                    placed.append(holder[r])
                    continue
                reused.values.append(r)
                reused.end = end
                holder[r] = reused
                continue
            holder[r] = PlacedBuffer([r], None, r.type.bytes, s.number, end, pool_of(r))
            placed.append(holder[r])
        placed += scratch_of(s)
    return placed
