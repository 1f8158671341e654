"""Values that are computed again while their earlier result is still in the arena."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from small_graphs import feeds_of, graph_of, x_of

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import _load_kernels, compile_model
from autodiff_gen.host.compiler import Compiler, find_compiler
from autodiff_gen.host.trainer import Trainer
from autodiff_gen.ir.build import apply
from autodiff_gen.ir.graph import Graph
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.module import IRModule
from autodiff_gen.ir.node import Node, Value
from autodiff_gen.lowering import left_out_stages, pipeline
from autodiff_gen.lowering.drop_recomputations import _numbered, drop_recomputations
from autodiff_gen.lowering.plan import EntryPlan
from autodiff_gen.passes.context import Context
from autodiff_gen.targets import board


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
    (plan,) = pipeline.planned(IRModule((graph,)), Context(backends=_load_kernels(("ref",), None)))
    return plan


def peak(plan: EntryPlan) -> int:
    return sum(p.peak for p in plan.plans.values())


@pytest.mark.parametrize("name", GRAPHS)
def test_what_is_still_in_the_arena_is_not_computed_again(name: str) -> None:
    graph, dropped = GRAPHS[name]
    graph = graph.with_roots(graph.roots)
    plan = plan_of(graph)
    with left_out_stages.without([drop_recomputations.__name__]):
        before = plan_of(graph)
    assert len(before.steps) - len(plan.steps) == dropped
    assert peak(plan) <= peak(before)
    feeds = feeds_of(graph)
    for a, b in zip(evaluate(plan.graph.roots, feeds), evaluate(graph.roots, feeds), strict=True):
        np.testing.assert_array_equal(a, b)


def norms() -> ag.Model:
    layers = [nn.Linear(12, 8), nn.Hardswish()]
    for _ in range(2):
        layers += [nn.Linear(8, 8), nn.Tanh(), nn.LayerNorm(8)]
    net = nn.Sequential(*layers, nn.Linear(8, 4))
    return ag.Model.supervised(net, (4, 12), nn.CrossEntropyLoss(), optim.Adam(lr=0.01))


def images() -> ag.Model:
    layers = [
        nn.Conv2d(3, 4, 3, padding=1),
        nn.SiLU(),
        nn.Conv2d(4, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.GELU(),
    ]
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 4))
    return ag.Model.supervised(net, (2, 3, 8, 8), nn.CrossEntropyLoss(), optim.SGD(lr=0.01, momentum=0.9))


def again_in_place(plan: EntryPlan) -> list[tuple[int, int]]:
    """Steps, and later ones that compute the same into memory while the earlier result is there for their readers."""
    number = _numbered(plan.graph.nodes, {}, {})
    places = {v: b for b in plan.placed if b.owner is None for v in b.values}
    writes = [(s.number, places[r], r) for s in plan.steps for r in s.node.results if r in places]
    taken = [(b.start, b, None) for b in plan.placed if b.owner is not None]
    last = {v.base: s.number for s in plan.steps for v in s.node.operands}

    def is_there(v: Value, at: int, again: Value, until: int) -> bool:
        here = places[v]
        return not any(
            at < k <= until and u is not again and b.arena_name == here.arena_name
            and b.offset < here.offset + v.type.bytes and here.offset < b.offset + b.bytes
            for k, b, u in (*writes, *taken)
        )  # fmt: skip

    found = []
    for step in plan.steps:
        results = [r for r in step.node.results if r in places]
        if len(results) == len(step.node.results) == 1:
            (r,) = results
            for at, _, v in writes:
                is_same = at < step.number and number[v] == number[r] and v.type == r.type
                if is_same and is_there(v, at, r, max(step.number, last.get(r, 0))):
                    found.append((at, step.number))
    return found


@pytest.mark.cc
@pytest.mark.parametrize(
    "made, kernels, part",
    [
        (norms, ("ref",), 0.85),
        (norms, ("ref",), 0.75),
        (norms, None, 0.85),
        (images, ("ref",), 0.9),
        (images, None, 0.9),
    ],
)
def test_networks_within_a_budget(
    made: Callable[[], ag.Model], kernels: tuple[str, ...] | None, part: float
) -> None:
    place, model = board.load("stm32"), made()
    full = compile_model(model, "model", kernels, place, 1 << 24)
    arena = full.struct_bytes - full.state_bytes
    program = compile_model(model, "model", kernels, place, full.state_bytes + int(part * arena))
    plan, whole = (next(e.plan for e in p.entries if e.name == "train_step") for p in (program, full))
    assert program.struct_bytes < full.struct_bytes and len(plan.steps) > len(whole.steps)
    assert again_in_place(plan) == []
    if kernels is not None:
        rng = np.random.default_rng(0)
        shape = (model.batch, *model.inputs[0].shape[1:])
        batches = [(rng.normal(size=shape).astype("float32"), rng.integers(0, 4, shape[0])) for _ in range(3)]
        trainers = [Trainer(p, Compiler(find_compiler(None))) for p in (program, full)]
        losses = [[t.train_step(*b) for b in batches] for t in trainers]
        assert losses[0] == losses[1]
