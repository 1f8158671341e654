"""Values that are computed again while their earlier result is still in the arena."""

from __future__ import annotations

import numpy as np
import pytest
from small_graphs import feeds_of, graph_of, x_of

from autodiff_gen.codegen.compiler import _load_kernels
from autodiff_gen.ir.build import apply
from autodiff_gen.ir.graph import Graph
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.module import Module
from autodiff_gen.ir.node import Node, Value
from autodiff_gen.lowering import pipeline
from autodiff_gen.lowering.drop_recomputations import drop_recomputations
from autodiff_gen.lowering.plan import EntryPlan
from autodiff_gen.passes.context import Context


def again(v: Value) -> Value:
    """v, computed by other nodes."""
    operands = tuple(again(u) if u.node.operands else u for u in v.node.operands)
    return Node(v.node.op, operands, v.node.attrs, (v.type,)).results[0]


def product(a: Value, b: Value) -> Value:
    return apply("matmul", a, b)


def graphs() -> dict[str, tuple[Graph, int]]:
    """Graphs, and how many steps of each are dropped."""
    x, w, u = (x_of(8, 8, name=name) for name in "xwu")
    first = product(x, w)
    chain = product(product(x, w), u)
    later = product(again(first), product(product(first, u), w))
    overwritten = product(again(first), product(apply("tanh", first), u))  # by tanh

    def of(outputs: dict[str, Value]) -> Graph:
        return graph_of(outputs, inputs=(x, w, u))

    return {
        "once": (of({"y": chain}), 0),
        "again": (of({"y": product(first, u), "z": product(again(first), w)}), 1),
        "with_its_operands": (of({"y": product(chain, u), "z": product(again(chain), w)}), 2),
        "three": (of({k: product(again(first), v) for k, v in zip("abc", (x, u, w), strict=True)}), 2),
        "later": (of({"y": later}), 0),
        "overwritten": (of({"y": overwritten}), 0),
        "other_operands": (of({"y": product(first, u), "z": product(product(x, u), w)}), 0),
    }


GRAPHS = graphs()


def plan_of(graph: Graph) -> EntryPlan:
    (plan,) = pipeline.finished(Module((graph,)), Context(backends=_load_kernels(("ref",), None)))
    return plan


def peak(plan: EntryPlan) -> int:
    return sum(p.peak for p in plan.plans.values())


@pytest.mark.parametrize("name", GRAPHS)
def test_what_is_still_in_the_arena_is_not_computed_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, dropped = GRAPHS[name]
    graph = graph.with_roots(graph.roots)
    plan = plan_of(graph)
    stages = tuple(s for s in pipeline.PIPELINE if s.__name__ != drop_recomputations.__name__)
    monkeypatch.setattr(pipeline, "PIPELINE", stages)
    before = plan_of(graph)
    assert len(before.steps) - len(plan.steps) == dropped
    assert peak(plan) <= peak(before)
    feeds = feeds_of(graph)
    for a, b in zip(evaluate(plan.graph.roots, feeds), evaluate(graph.roots, feeds), strict=True):
        np.testing.assert_array_equal(a, b)
