"""The verifier: a pass that breaks a rule of the IR is found after its stage, which the message names with the node."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from small_graphs import float_state, x_of

from autodiff_gen import functional as F
from autodiff_gen.errors import GraphError
from autodiff_gen.ir.build import make_state
from autodiff_gen.ir.graph import Graph
from autodiff_gen.ir.module import IRModule
from autodiff_gen.ir.node import Node, Region, Value
from autodiff_gen.ir.op_kinds import Cond, Fused, Scan
from autodiff_gen.ir.types import Dim, Type, f32
from autodiff_gen.ir.verifier import verify
from autodiff_gen.lowering import pipeline
from autodiff_gen.passes.context import Context
from autodiff_gen.passes.fusion.fuse_elementwise import fuse_elementwise
from autodiff_gen.passes.simplify.cse import cse


def a_graph() -> Graph:
    """y = x * tanh(x) and a state that is decremented."""
    s, w = float_state("w", 4)
    x = x_of(4)
    return Graph("g", (x,), {"y": F.tanh(x) * x}, {s: w - 1.0})


def a_scan() -> Graph:
    x, h = x_of(9, 4), x_of(4, name="h")
    _, last = F.scan(lambda h, x: (F.tanh(h + x), h), h, x)
    return Graph("g", (x, h), {"y": last})


def a_cond() -> Graph:
    x = x_of(4)
    y = F.cond(F.sum(x) > 0.0, lambda v: F.tanh(v), lambda v: v * 2.0, x)
    return Graph("g", (x,), {"y": y})


def node_of(graph: Graph, kind: str | type) -> Node:
    return next(n for n in graph.nodes if n.op.name == kind or kind is type(n.op.lower))


def with_product(graph: Graph, node: Node) -> Graph:
    """The graph with another node instead of its product."""
    return replace(graph, outputs={"y": node.results[0]})


def wrong_operand(graph: Graph) -> Graph:
    mul = node_of(graph, "mul")
    return with_product(graph, Node(mul.op, (mul.operands[0], graph.inputs[0][:3]), {}, (Type(f32, (4,)),)))


def wrong_result(graph: Graph) -> Graph:
    mul = node_of(graph, "mul")
    return with_product(graph, Node(mul.op, mul.operands, {}, (Type(f32, (2, 4)),)))


def cycle(graph: Graph) -> Graph:
    mul, tanh = node_of(graph, "mul"), node_of(graph, "tanh")
    tanh.operands = mul.results
    return replace(graph)


def changed_operands(graph: Graph) -> Graph:
    """Of a node that was verified before."""
    mul = node_of(graph, "mul")
    mul.operands = (mul.operands[0], F.sum(graph.inputs[0]) * np.ones((3, 1), np.float32))
    return replace(graph)


def stray_value(graph: Graph) -> Graph:
    mul = node_of(graph, "mul")
    x = mul.operands[0]
    return with_product(graph, Node(mul.op, (x, Value(x.node, 1, x.type)), {}, (x.type,)))


def other_input(graph: Graph) -> Graph:
    return replace(graph, outputs={"y": node_of(graph, "tanh").results[0] + x_of(4, name="z")})


def other_state(graph: Graph) -> Graph:
    _, other = float_state("w", 4)
    return replace(graph, outputs={"y": graph.outputs["y"] + other})


def wrong_update(graph: Graph) -> Graph:
    (state,) = graph.updates
    return replace(graph, updates={state: make_state(state) * np.ones((3, 1), np.float32)})


def output_named_as_an_input(graph: Graph) -> Graph:
    return replace(graph, outputs={"x": graph.outputs["y"]})


def two_new_states_of_a_name(graph: Graph) -> Graph:
    one, _ = float_state("m", 4)
    two, _ = float_state("m", 4)
    return replace(graph, updates={one: graph.outputs["y"], two: graph.outputs["y"]})


def batch_axis_last(graph: Graph) -> Graph:
    x = x_of(Dim(1, 2), 3)
    return replace(graph, inputs=(x,), outputs={"y": F.tanh(x).T}, updates={})


def with_region(kind: type, change: Callable[[Node, Region], Region]) -> Callable[[Graph], Graph]:
    """A pass that replaces the last region of a node."""

    def broken(graph: Graph) -> Graph:
        node = node_of(graph, kind)
        regions = (*node.regions[:-1], change(node, node.regions[-1]))
        types = tuple(r.type for r in node.results)
        new = Node(node.op, node.operands, node.attrs, types, regions)
        return replace(graph, outputs={"y": new.results[graph.outputs["y"].index]}, updates={})

    return broken


def a_loop() -> Graph:
    return fuse_elementwise(replace(a_graph(), updates={}), Context())


outer_result = lambda node, region: replace_region(region, results=(node.operands[-1], *region.results[1:]))
fewer_results = lambda node, region: replace_region(region, results=region.results[:-1])
fewer_params = lambda node, region: replace_region(region, params=region.params[:-1])
wider_result = lambda node, region: replace_region(
    region, results=(F.broadcast_to(region.results[0], (2, 4)), *region.results[1:])
)
view_result = lambda node, region: replace_region(region, results=(region.results[0].T, *region.results[1:]))


def replace_region(
    region: Region, params: tuple[Value, ...] | None = None, results: tuple[Value, ...] | None = None
) -> Region:
    return Region(region.params if params is None else params, region.results if results is None else results)


ROWS: list[tuple[str, Callable[[], Graph], Callable[[Graph], Graph], str]] = [
    ("wrong operand", a_graph, wrong_operand, "slice: f32[3]) -> f32[4]: shapes"),
    ("wrong result", a_graph, wrong_result, "mul(tanh: f32[4], x: f32[4]) -> f32[2,4]: its rule says f32[4]"),
    ("cycle", a_graph, cycle, "tanh(mul: f32[4]) -> f32[4]: operand <mul: f32[4]> is used before it is defined"),
    ("changed operands", a_graph, changed_operands, "mul: f32[3,1]) -> f32[4]: its rule says f32[3,4]"),
    ("stray value", a_graph, stray_value, "operand <tanh: f32[4]> is no result of its node"),
    ("other input", a_graph, other_input, "'z' is used but is not among the inputs: add(tanh: f32[4], z: f32[4])"),
    ("other state", a_graph, other_state, "two inputs or parameters are called 'w'"),
    ("wrong update", a_graph, wrong_update, "new value of 'w' is f32[3,4], the state is f32[4]: mul(w: f32[4], const:"),
    ("two names", a_graph, output_named_as_an_input, "two inputs or outputs are called 'x'"),
    ("two states", a_graph, two_new_states_of_a_name, "two new states are called 'm'"),
    ("batch axis", a_graph, batch_axis_last, "batch axis must come first"),
    ("fused reads outside", a_loop, with_region(Fused, outer_result), "a region reads <x: f32[4]>"),
    ("fused without param", a_loop, with_region(Fused, fewer_params), "a region reads <p0: f32[4]>"),
    ("fused results", a_loop, with_region(Fused, fewer_results), "a region has 1 params and 0 results"),
    ("fused type", a_loop, with_region(Fused, wider_result), "params [f32[4]] and results [f32[2,4]]"),
    ("fused view", a_loop, with_region(Fused, view_result), "no memory for <permute: f32[4]>, a view of <mul: f32[4]>"),
    ("scan reads outside", a_scan, with_region(Scan, outer_result), "a region reads <x: f32[9,4]>"),
    ("scan results", a_scan, with_region(Scan, fewer_results), "results"),
    ("scan carry", a_scan, with_region(Scan, wider_result), "and results [f32[2,4]"),
    ("branch reads outside", a_cond, with_region(Cond, outer_result), "a region reads <x: f32[4]>"),
    ("branch type", a_cond, with_region(Cond, wider_result), "a region has params [f32[4]] and results [f32[2,4]]"),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r[0])
def test_a_pass_that_breaks_a_rule_is_named(
    row: tuple[str, Callable[[], Graph], Callable[[Graph], Graph], str],
) -> None:
    _, make, change, message = row

    def broken(graph: Graph, context: Context) -> Graph:
        return change(graph)

    graph = make()
    verify(graph)
    stages = pipeline.on_entries(cse), pipeline.on_entries(broken)
    with pytest.raises(GraphError, match=re.escape(message)) as error:
        list(pipeline.run(stages, IRModule((graph,)), Context()))
    assert str(error.value).startswith("after broken: g: ") and "\n" not in str(error.value)
