"""Store the results of functions such as tanh in a scan where its gradient, another scan, would call them again.

    entry f(h: f32[4], x: f32[9,4], dy: f32[4])
      %0: f32[4], %1: f32[9,4] = scan(h, x, length=9, carries=1, xs=1, axes=(0,), reverse=False)
          with %2 h_t: f32[4], %3 x_t: f32[4]
          %4: f32[4] = sigmoid(%3)
          %5: f32[4] = mul(%2, %4)
          yield %5, %2
      %6: f32[4], %7: f32[9,4] = scan(dy, x, %1, length=9, carries=1, xs=2, axes=(0,), reverse=True)
          with %8 d_h: f32[4], %9 x_t: f32[4], %10 h_t: f32[4]
          %11: f32[4] = sigmoid(%9)
          %12: f32[4] = mul(%8, %11)
          %13: f32[4] = mul(%12, %10)
          yield %12, %13
      y <- %0
      dh <- %6
      ds <- %7
    ->
    entry f(h: f32[4], x: f32[9,4], dy: f32[4])
      %0: f32[4], %1: f32[9,4], %2: f32[9,4] = scan(h, x, length=9, carries=1, xs=1, axes=(0, 0), reverse=False)
          with %3 h_t: f32[4], %4 x_t: f32[4]
          %5: f32[4] = sigmoid(%4)
          %6: f32[4] = mul(%3, %5)
          yield %6, %3, %5
      %7: f32[4], %8: f32[9,4] = scan(dy, x, %1, %2, length=9, carries=1, xs=3, axes=(0,), reverse=True)
          with %9 d_h: f32[4], %10 x_t: f32[4], %11 h_t: f32[4], %12 sigmoid: f32[4]
          %13: f32[4] = mul(%9, %12)
          %14: f32[4] = mul(%13, %11)
          yield %13, %14
      y <- %0
      dh <- %7
      ds <- %8

The results become stacks of the first scan, for all times, and the second scan reads the stacks. Results that are
computed from disjoint windows of one value, such as the gates of a recurrent layer, are assembled in the order of the
windows: the stack can reuse the value's memory. Where a smaller arena is worth the time, the functions are called
again.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from ...errors import ShapeError
from ...ir.build import apply
from ...ir.closures import param
from ...ir.graph import Graph
from ...ir.names import label_of, short_name, with_label_of, with_role
from ...ir.node import Node, Region, Value
from ...ir.op_kinds import Elementwise, Scan, ViewKind
from ...ir.origin import Origin, building_as
from ...ir.rewrite import replaced, rewritten
from ...ir.traits import key_of, view_kind
from ...ir.types import Shape, planned_size
from ...ir.views import layout
from ...ops.control_flow.scan_builder import stack_axis, stacked, time_first
from ...ops.movement.slices import window
from ..context import Context
from ..profitability import is_worth_its_time
from ..simplify.region_dce import region_dce

Repeated: TypeAlias = tuple[
    Node, Node, dict[Value, Value]
]  # two scans; results in the second -> in the first
Window: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]  # starts and steps


def store_functions(graph: Graph, context: Context) -> Graph:
    """See the module. Each pair of scans is decided once."""
    decided: set[tuple[Origin, Origin]] = set()
    while True:
        pairs = (pair for pair in repeated_functions(graph) if _origins(pair) not in decided)
        if (pair := next(pairs, None)) is None:
            return graph
        decided.add(_origins(pair))
        best = region_dce(with_stored_functions(graph, *pair), context)
        fewer = with_stored_functions(graph, *pair, unassembled=False)
        for less in (graph if fewer is graph else region_dce(fewer, context), graph):
            if is_worth_its_time(less, best, context):
                best = less
        graph = best


def _origins(pair: Repeated) -> tuple[Origin, Origin]:
    return pair[0].origin, pair[1].origin


def repeated_functions(graph: Graph) -> Iterator[Repeated]:
    """Pairs of scans, with the results of functions in the body of the second scan mapped to equal results in the
    first."""
    scans = [n for n in graph.of(Scan) if "samples" not in n.attrs]
    for late, early in itertools.product(scans, scans):
        again = _computed_again(early, late)
        if again:
            yield early, late, again


def _computed_again(early: Node, late: Node) -> dict[Value, Value]:
    """The results of functions in the body of `late`, mapped to equal results that the body of `early` computes at the
    same time."""
    if early.attrs["length"] != late.attrs["length"]:
        return {}
    (first,), (second,) = early.regions, late.regions
    twins = dict(_same_params(early, late))  # values of the second body -> equal values of the first
    known: dict[Any, Node] = {}
    for node in first.nodes:
        known.setdefault(key_of(node, node.operands), node)
    found: dict[Value, Value] = {}
    for node in second.nodes if twins else ():
        twin = known.get(key_of(node, tuple([twins.get(v, v) for v in node.operands])))
        if twin is not None:
            twins.update(zip(node.results, twin.results, strict=True))
            if isinstance(node.op.lower, Elementwise) and node.op.lower.calls:
                found.update(zip(node.results, twin.results, strict=True))
    return found


def _same_params(early: Node, late: Node) -> Iterator[tuple[Value, Value]]:
    """The params of the body of `late` and the equal values of the body of `early`; none if `late` reads no result of
    `early`."""
    (first,), (second,), carries = early.regions, late.regions, early.attrs["carries"]
    inside = [*zip(early.operands, first.params, strict=True)]
    ends = carries + early.attrs["xs"], late.attrs["carries"] + late.attrs["xs"]
    stacks = zip(early.results[carries:], early.attrs["axes"], first.results[carries:], strict=True)
    elements = inside[carries : ends[0]] + [(time_first(v, axis), r) for v, axis, r in stacks]
    if all(v.base.node is not early for v in late.operands):
        return
    for i, v in enumerate(late.operands[late.attrs["carries"] :], start=late.attrs["carries"]):
        for outer, inner in elements if i < ends[1] else inside[ends[0] :]:
            if _is_same(v, outer):
                yield second.params[i], inner
                break


def _is_same(a: Value, b: Value) -> bool:
    """Whether two views show the same elements of one value."""
    return a is b or (
        a.base is b.base and a.type == b.type and layout(a) is not None and layout(a) == layout(b)
    )


def with_stored_functions(
    graph: Graph, early: Node, late: Node, again: dict[Value, Value], unassembled: bool = True
) -> Graph:
    """The graph in which `late` reads results of functions of `early`. again: results of `late` -> equal results of
    `early`; unassembled: whether results that cannot be assembled are stored too."""
    stacks, place = _stacks(early, again, unassembled)
    if not stacks:
        return graph
    made: list[Node] = []

    def rewrite(node: Node, operands: tuple[Value, ...]) -> Sequence[Value]:
        if node is early:
            made.append(_storing(node, operands, stacks))
            return made[0].results[: len(node.results)]
        return _reading(
            node, operands, made[0], stacks, {r: place[v] for r, v in again.items() if v in place}
        )

    return rewritten(graph, rewrite, (early, late))


def _stacks(
    early: Node, again: dict[Value, Value], unassembled: bool
) -> tuple[list[Value], dict[Value, tuple[int, Window | None]]]:
    """The values that the body of `early` stores, and for each result of a function the number of the stored value and
    the window of it."""
    kept = [(r, _windows(r, set(again.values()))) for r in dict.fromkeys(again.values())]
    stacks: list[Value] = []
    place: dict[Value, tuple[int, Window | None]] = {}
    for shape in dict.fromkeys(shape for _, windows in kept for shape in windows):
        parts = {r: windows[shape] for r, windows in kept if shape in windows and r not in place}
        joined = _assembled(parts, shape, early)
        if joined is not None:
            place.update((r, (len(stacks), at)) for r, at in parts.items())
            stacks.append(joined)
    for r, _ in kept if unassembled else ():
        if r not in place:
            place[r] = len(stacks), None
            stacks.append(r)
    return stacks, place


def _storing(scan: Node, operands: tuple[Value, ...], stacks: Sequence[Value]) -> Node:
    """The scan with values of its body as further stacks, its last results."""
    (region,) = scan.regions
    axes = tuple([stack_axis(v.type.shape, 1 in scan.attrs["axes"]) for v in stacks])
    types = [stacked(v.type, scan.attrs["length"], axis) for v, axis in zip(stacks, axes, strict=True)]
    attrs = {**scan.attrs, "axes": (*scan.attrs["axes"], *axes)}
    body = Region(region.params, (*region.results, *stacks))
    return Node(scan.op, operands, attrs, (*(r.type for r in scan.results), *types), (body,), scan.origin)


def _reading(
    scan: Node,
    operands: tuple[Value, ...],
    storing: Node,
    stacks: Sequence[Value],
    place: dict[Value, tuple[int, Window | None]],
) -> Sequence[Value]:
    """The results of the scan if it reads the last results of `storing`, which stack these values of its body. place:
    for values of the scan's own body, the number of the stack and the window of it."""
    (region,) = scan.regions
    axes = storing.attrs["axes"][-len(stacks) :]
    given = [time_first(v, axis) for v, axis in zip(storing.results[-len(stacks) :], axes, strict=True)]
    params = [param(short_name(v), v.type) for v in stacks]
    mapping = {
        v: params[k] if at is None else with_label_of(window(params[k], v.type.shape, *at), v)
        for v, (k, at) in place.items()
    }
    end = scan.attrs["carries"] + scan.attrs["xs"]
    shown = (*region.params[:end], *params, *region.params[end:])
    body = Region(shown, tuple(replaced(region.results, mapping)))
    attrs = {**scan.attrs, "xs": scan.attrs["xs"] + len(stacks)}
    every = (*operands[:end], *given, *operands[end:])
    return Node(scan.op, every, attrs, tuple([r.type for r in scan.results]), (body,), scan.origin).results


def _windows(v: Value, others: set[Value]) -> dict[Shape, Window]:
    """The windows of larger values that v is computed from element by element, by the shape of the larger value. A
    shape with several windows is left out, and so are windows that only other functions read."""
    found: dict[Shape, set[Window]] = {}
    pending, seen = list(v.node.operands), set[Value]()
    while pending:
        u = pending.pop()
        if u in seen or u in others:
            continue
        seen.add(u)
        if view_kind(u.node) is ViewKind.WINDOW:
            if u.type.shape == v.type.shape:
                at = tuple(u.node.attrs["starts"]), tuple(u.node.attrs["steps"])
                found.setdefault(u.node.operands[0].type.shape, set()).add(at)
        elif isinstance(u.node.op.lower, Elementwise):
            pending += u.node.operands
    return {shape: at for shape, windows in found.items() for at in windows if len(windows) == 1}


def _assembled(parts: dict[Value, Window], shape: Shape, scan: Node) -> Value | None:
    """One value assembled from these parts. None if they overlap or do not fill the value."""
    if sum(planned_size(v.type.shape) for v in parts) != planned_size(shape) or len(parts) < 2:
        return None
    starts, steps = (tuple(at[k] for at in parts.values()) for k in (0, 1))
    try:
        with building_as(scan.origin):
            whole = apply("assemble", *parts, shape=shape, starts=starts, steps=steps, fill=0.0)
    except ShapeError:
        return None
    in_order = sorted(parts, key=lambda v: parts[v])
    roles = [known.role if (known := label_of(v)) is not None else "" for v in in_order]
    return with_role(whole, "_".join(roles) if all(roles) else "activations")
