"""Scan and cond as plans: each region becomes a separate entry graph, planned like any other.

Operands are inputs that are stored where the operand is stored; results of the region are written where the node's
results are stored, strided where a stack has the time axis after the batch. Carries are states of the body: their new
values reuse the buffers of the old ones in place. A stack with the layout of an operand that dies in the loop reuses
the operand's buffer, element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ..ir.graph import Graph, State
from ..ir.names import short_name
from ..ir.node import OPS, STATE, Node, Value, base, in_form
from ..ir.op_forms import WithLayout
from ..ir.op_kinds import Leaf, Scan
from ..ir.rewrite import replaced
from ..ir.scan_memory import reused_by_stacks
from ..ir.strides import Strided, dense
from ..ir.types import Dim
from .plan import CondPlan, EntryPlan, InnerPlan, RegionPlan, ScanPlan, Written
from .region_inputs import RegionInputs

Planner = Callable[[Graph], "EntryPlan"]


def plan_regions(node: Node, graph: Graph, plan: Planner) -> RegionPlan:
    """Plan the regions of a scan or cond."""
    if not isinstance(node.op.lower, Scan):
        return plan_cond(node, graph, plan)
    reuses = reused_by_stacks(node, graph) if "samples" not in node.attrs else {}
    return plan_scan(node, graph, plan, reuses)


def over_operands(made: RegionPlan, outer: Mapping[Value, Value]) -> RegionPlan:
    """The plan of the same regions over other operands."""

    def over(part: InnerPlan) -> InnerPlan:
        return replace(part, bound=tuple(replace(b, outer=outer[b.outer]) for b in part.bound))

    if isinstance(made, CondPlan):
        return CondPlan(over(made.then), over(made.otherwise))
    reuses = {k: outer[v] for k, v in made.reuses.items()}
    return replace(made, first=made.first and over(made.first), body=over(made.body), reuses=reuses)


def plan_scan(node: Node, graph: Graph, plan: Planner, reuses: Mapping[int, Value]) -> ScanPlan:
    """Plan the first values and the body of the scan `node` of `graph`. reuses: by the index of a stack among the
    results, the operand whose buffer it reuses."""
    carries, samples = node.attrs["carries"], node.attrs.get("samples", 0)
    names, inputs = _result_names(node, graph), RegionInputs()
    keys: list[str | State] = list(names)  # of the results: an output, or the state that holds it
    mapping = _params(node, inputs, reuses, keys)
    results = replaced(node.regions[0].results, mapping)
    ends = range(carries, len(results))
    layouts = [_element(node, k) if not samples else dense(results[k].type.shape) for k in ends]
    inside = dict(zip(keys, _placed(results, carries, layouts, names), strict=True))
    written = [
        Written(key, k, r.type.shape, r.type.dtype.c, None if k < carries else _time_step(node, k))
        for k, (key, r) in enumerate(zip(keys, results, strict=True))
    ]
    first = _first_values(node, graph, names, plan) if carries else None
    start = len(first.plan.steps) if first is not None else 0
    body = inputs.part(f"{graph.name}_body", inside, written, plan, start, inner=not samples)
    return ScanPlan(first, body, node.attrs["length"], node.attrs["reverse"], reuses, samples)


def _params(
    node: Node, inputs: RegionInputs, reuses: Mapping[int, Value], keys: list[str | State]
) -> dict[Value, Value]:
    """The values inside for the params of a scan. Params that hold results become states: carries, and elements of
    operands whose buffers stacks reuse. `keys` then names the results as these states."""
    (region,), carries = node.regions, node.attrs["carries"]
    elements, samples = range(carries, carries + node.attrs["xs"]), node.attrs.get("samples", 0)
    mapping: dict[Value, Value] = {}
    for k, v in enumerate(region.params[:carries]):
        state = keys[k] = State(inputs.fresh(_name(v)), v.type, None)
        mapping[v] = Node(STATE, (), {"state": state}, (v.type,)).results[0]
    for i, (v, outer) in enumerate(zip(region.params, node.operands, strict=True)):
        if i in elements and samples:
            mapping[v] = inputs.some(_name(v), outer, v.type)
        elif i in elements:
            donating, held = next((r for r, o in reuses.items() if o is outer), None), None
            if donating is not None:
                held = keys[donating] = State(inputs.fresh(_name(v)), v.type, None)
            mapping[v] = inputs.element(_name(v), outer, held)
        elif i >= carries:
            mapping[v] = inputs.bring(_name(v), outer)
    return mapping


def _result_names(node: Node, graph: Graph) -> list[str]:
    return [f"{graph.name}_{i}" for i in range(len(node.results))]


def _time_step(node: Node, k: int) -> int:
    """The elements from one time step to the next, or from one sample to the next, in the stack that is result k."""
    shape = node.results[k].type.shape
    step: int = dense(shape).strides[node.attrs["axes"][k - node.attrs["carries"]]]
    return step * shape[0].coef if "samples" in node.attrs and isinstance(shape[0], Dim) else step


def plan_cond(node: Node, graph: Graph, plan: Planner) -> CondPlan:
    """Plan both regions of the cond `node` of `graph`."""
    parts: list[InnerPlan] = []
    for region, word in zip(node.regions, ("true", "false"), strict=True):
        inputs, names = RegionInputs(), _result_names(node, graph)
        mapping = {
            v: inputs.bring(_name(v), outer)
            for v, outer in zip(region.params, node.operands[1:], strict=True)
        }
        inside: dict[str | State, Value] = dict(zip(names, replaced(region.results, mapping), strict=True))
        written = [Written(names[i], i, r.type.shape, r.type.dtype.c) for i, r in enumerate(node.results)]
        start = sum(len(p.plan.steps) for p in parts)
        parts.append(inputs.part(f"{graph.name}_{word}", inside, written, plan, start))
    return CondPlan(parts[0], parts[1])


def _name(v: Value) -> str:
    return short_name(base(v))


def _first_values(node: Node, graph: Graph, names: Sequence[str], plan: Planner) -> InnerPlan:
    """A graph that copies the carries' first values to where the carries are stored."""
    carries, inputs = node.attrs["carries"], RegionInputs()
    values = [inputs.bring(f"first{i}", node.operands[i]) for i in range(carries)]
    written = [Written(names[i], i, v.type.shape, v.type.dtype.c) for i, v in enumerate(values)]
    inside: dict[str | State, Value] = dict(zip(names, values, strict=False))
    return inputs.part(f"{graph.name}_first", inside, written, plan)


def _element(node: Node, k: int) -> Strided:
    """The layout of an element of the stack that is result k."""
    axis = node.attrs["axes"][k - node.attrs["carries"]]
    shape = node.results[k].type.shape
    strides = dense(shape).strides
    return Strided((*shape[:axis], *shape[axis + 1 :]), (*strides[:axis], *strides[axis + 1 :]))


def _placed(
    results: Sequence[Value], carries: int, layouts: Sequence[Strided], names: Sequence[str]
) -> list[Value]:
    """The region's results. Results with gaps between their rows are values of that layout: products write there
    directly, and every reader reads there.
    """
    out = list(results)
    moved: set[Value] = set()
    for k, at in enumerate(layouts, start=carries):
        v = out[k]
        if at.dense:
            continue
        placed = in_form(v.node.op, WithLayout)
        operands, attrs = (v.node.operands, v.node.attrs) if placed else ((v,), {})
        attrs = {**attrs, "layout": at, "of": names[k]}
        node = Node(placed or OPS["place"], operands, attrs, (v.type,), origin=v.node.origin)
        (there,) = node.results
        if not isinstance(v.node.op.lower, Leaf) and v not in moved:
            moved.add(v)  # a carry or another stack that is v too gets a separate buffer
            out = [v if old is v else new for old, new in zip(out, replaced(out, {v: there}), strict=True)]
        out[k] = there
    return out
