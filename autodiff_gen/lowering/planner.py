"""From a graph to steps: which calls and loop nests there are, in which order, and where every value lies.

This is the last stage that thinks; codegen/program.py and codegen/files.py only write down what is decided here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from .. import passes
from ..ir.build import make_input
from ..ir.dependences import gate_edges, ordering_edges, state_of
from ..ir.graph import Graph, State
from ..ir.kernel_call import KernelCall
from ..ir.node import STATE, Node, Value, topological
from ..ir.op_kinds import Cond, Fused, Leaf, RowContraction, Scan, View
from ..ir.strides import dense
from ..ir.types import Type, planned_size
from ..ir.views import base, layout, stored
from ..kernels.registry import Backends
from ..kernels.table import Kernel
from ..passes.copy_insertion import KEPT, with_kept_state
from ..passes.fuse_elementwise import fuse_elementwise
from ..passes.fusion_groups import is_free
from .accesses import Accesses
from .buffer_assignment import Buffer, place
from .control_flow import plan_cond, plan_scan
from .kernel_calls import call_of, is_gathered, readable, row_call
from .loop_nest import LoopNest, Scratch
from .plan import EntryPlan, Placed, Step
from .schedule import order_steps


def plan_entry(
    graph: Graph, backends: Backends, dump: Path | None = None, first: Collection[str] = ()
) -> EntryPlan:
    """Run the passes, order the steps, choose kernels and place every buffer.

    `first` names outputs, of a graph without updates, that are complete before any other step begins.
    """
    graph = passes.run(graph, dump, backends.vectors)
    while (hazard := _overwritten_too_early(graph)) is not None:
        graph = fuse_elementwise(with_kept_state(graph, *hazard), backends.vectors)
    nodes = [n for n in topological(graph.roots) if _is_step(n)]
    steps = [_step(n, graph, backends) for n in nodes]
    states, outputs = _homes(graph)
    steps = _ordered(graph, steps, states, outputs, first)
    placed = _lifetimes(steps, states, outputs)
    plans = {}
    for pool in ("float", "int"):
        members = [p for p in placed if p.pool == pool]
        plan = place([Buffer(i, p.bytes, p.start, p.end) for i, p in enumerate(members)])
        plans[pool] = plan
        for i, p in enumerate(members):
            p.offset = plan.offsets[i]
    copies = sorted({s.name for n in topological(graph.roots) for s in _kept_states(n)})
    return EntryPlan(graph, steps, states, outputs, placed, plans, copies)


def _kept_states(node: Node) -> list[State]:
    """The states of whose old values a fused node stores a copy."""
    out = []
    for region in node.regions if isinstance(node.op.lower, Fused) else ():
        outer = dict(zip(region.params, node.operands, strict=True))
        for v in map(base, region.results):
            source = base(v.node.operands[0]) if v.node.hint.startswith(KEPT) else None
            state = state_of(outer[source]) if source in outer else None
            out += [state] if state is not None else []
    return out


def _is_step(node: Node) -> bool:
    return not isinstance(node.op.lower, Leaf | View) and not is_free(node)


# Loop nests and donation


def _donors(graph: Graph, node: Node) -> list[tuple[Value, Value, Value]]:
    """(operand, param, result) where the result of a fused node takes the bytes of a state that the operand
    shows.
    """
    out = []
    region = node.regions[0]
    for state, new in graph.updates.items():
        if base(new).node is not node:
            continue
        result = region.results[base(new).index]
        for operand, param in zip(node.operands, region.params, strict=True):
            if state_of(operand) is state:
                out.append((operand, param, result))
    return out


def _may_share(accesses: Accesses, operand: Value, param: Value, result: Value) -> bool:
    at = layout(operand)
    if at is None or at != stored(result):
        return accesses.read_first(param, result)
    return accesses.may_share(param, result)


def _overwritten_too_early(graph: Graph) -> tuple[Node, Value] | None:
    """A fused node, and its operand that shows a state whose bytes the node overwrites before the last read."""
    for node in topological(graph.roots):
        donors = _donors(graph, node) if isinstance(node.op.lower, Fused) else []
        if donors:
            accesses = Accesses(LoopNest(node.regions[0]), frozenset(p for _, p, _ in donors))
            for operand, param, result in donors:
                if not _may_share(accesses, operand, param, result):
                    return node, operand
    return None


def _step(node: Node, graph: Graph, backends: Backends) -> Step:
    step = Step(node)
    if isinstance(node.op.lower, Scan):
        step.inner = plan_scan(node, graph, lambda g: plan_entry(g, backends))
    elif isinstance(node.op.lower, Cond):
        step.inner = plan_cond(node, graph, lambda g: plan_entry(g, backends))
    elif node.regions:
        step.nest = LoopNest(node.regions[0])
        step.locked = frozenset(p for _, p, _ in _donors(graph, node))
        operand = dict(zip(node.regions[0].params, node.operands, strict=True))
        for inner in step.nest.roots:
            if isinstance(inner.op.lower, RowContraction):
                layouts = [readable(operand[v]) for v in inner.operands]
                step.calls[inner] = _with_kernel(row_call(inner, layouts), backends)
                if is_gathered(layouts[0]):
                    row = make_input("factor", Type(inner.operands[0].type.dtype, layouts[0].shape[1:]))
                    row.node.hint = "factor"
                    step.gathered[inner] = row
                    step.nest.scratch[row] = Scratch(row, (), row.type.shape, row.type.dtype)
    else:
        step.calls[node] = _with_kernel(call_of(node), backends)
    return step


def _with_kernel(call: KernelCall, backends: Backends) -> tuple[KernelCall, Kernel]:
    return call, backends.select(call.kernel, call.facts())


# Homes, order, lifetimes


def _homes(graph: Graph) -> tuple[dict[Value, State], dict[Value, str]]:
    states = {v: v.node.attrs["state"] for v in graph.leaves(STATE) if v not in graph.inputs}
    states.update({base(new): state for state, new in graph.updates.items()})
    return states, {base(v): name for name, v in graph.outputs.items()}


def _pool(v: Value) -> str:
    return "int" if v.type.dtype.kind in "iu" and v.type.dtype.size == 4 else "float"


def _scratch(step: Step) -> list[Placed]:
    """What a step needs for itself while it runs: scratch of a loop nest, the arenas of its regions."""
    out = []
    if step.nest is not None:
        for v, s in step.nest.scratch.items():
            out.append(
                Placed([v], step, planned_size(s.shape) * s.dtype.size, step.number, step.number, _pool(v))
            )
    if step.inner is not None:
        for pool in ("float", "int"):
            size = max(part.plan.plans[pool].peak for part in step.inner.parts)
            out += [Placed([], step, size, step.number, step.number, pool)] if size else []
    return out


def needed_by(graph: Graph, outputs: Collection[str]) -> set[Node]:
    """The nodes that compute the outputs of these names."""
    return set(topological(v for name, v in graph.outputs.items() if name in outputs))


def _ordered(
    graph: Graph,
    steps: list[Step],
    states: Mapping[Value, State],
    outputs: Mapping[Value, str],
    first: Collection[str],
) -> list[Step]:
    index = {s.node: i for i, s in enumerate(steps)}
    ids: dict[Value, int] = {}
    makes: list[dict[int, int]] = []
    for s in steps:
        mine = [r for r in s.node.results if r not in states and r not in outputs]
        makes.append({ids.setdefault(r, len(ids)): (r.type.bytes + 3) // 4 * 4 for r in mine})
    edges = ordering_edges(graph)
    for n, first_of_all in gate_edges(graph).items():
        edges.setdefault(n, []).extend(first_of_all)
    before, reads = [], []
    for s in steps:
        sources = [base(v) for v in s.node.operands]
        before.append(
            [index[v.node] for v in sources if v.node in index]
            + [index[n] for n in edges.get(s.node, ()) if n in index]
        )
        reads.append([ids[v] for v in sources if v in ids])
    if first:
        urgent = needed_by(graph, first)
        early = [i for node, i in index.items() if node in urgent]
        for node, i in index.items():
            before[i] += [] if node in urgent else early
    scratch = [sum(p.bytes for p in _scratch(s)) for s in steps]
    ordered = [steps[i] for i in order_steps(before, makes, reads, scratch)]
    for number, s in enumerate(ordered, start=1):
        s.number = number
    return ordered


def _lifetimes(
    steps: list[Step], states: Mapping[Value, State], outputs: Mapping[Value, str]
) -> list[Placed]:
    """Buffers with lifetimes; a result takes the bytes of an operand that dies in its step, where the loops
    allow it.
    """
    last: dict[Value, int] = {}
    for s in steps:
        for v in s.node.operands:
            last[base(v)] = s.number
    holder: dict[Value, Placed] = {}
    placed: list[Placed] = []
    for s in steps:
        accesses = None
        for r in s.node.results:
            if r in states or r in outputs:
                continue
            end = max(last.get(r, 0), s.number)
            if s.nest is not None and accesses is None:
                accesses = Accesses(s.nest, s.locked)
            donor = _dying_operand(s, r, last, holder, accesses) if accesses is not None else None
            if s.inner is not None and r.index in s.inner.takes:
                donor = holder[base(s.inner.takes[r.index])]
            if donor is not None:
                donor.values.append(r)
                donor.end = end
                holder[r] = donor
                continue
            holder[r] = Placed([r], None, r.type.bytes, s.number, end, _pool(r))
            placed.append(holder[r])
        placed += _scratch(s)
    return placed


def _dying_operand(
    s: Step, r: Value, last: Mapping[Value, int], holder: Mapping[Value, Placed], accesses: Accesses
) -> Placed | None:
    region = s.node.regions[0]
    result = region.results[r.index]
    for source in dict.fromkeys(base(v) for v in s.node.operands):
        buffer = holder.get(source)
        if (
            buffer is None
            or buffer.end != s.number
            or last[source] != s.number
            or buffer.values[-1] is not source
        ):
            continue
        if source.type.dtype != r.type.dtype or source.type.bytes != r.type.bytes:
            continue
        views = [(v, p) for v, p in zip(s.node.operands, region.params, strict=True) if base(v) is source]
        if all(layout(v) == dense(result.type.shape) and accesses.may_share(p, result) for v, p in views):
            return buffer
    return None
