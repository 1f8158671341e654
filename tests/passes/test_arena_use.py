"""The arena that a graph needs, without planning it: as many bytes as its plan."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from corner_cases import SURVIVORS, survivor
from graph_stages import rewritten
from small_graphs import graph_of, x_of

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.ir.build import apply
from autodiff_gen.ir.module import IRModule
from autodiff_gen.ir.node import Value
from autodiff_gen.kernels import registry
from autodiff_gen.lowering import pipeline
from autodiff_gen.lowering.plan import EntryPlan
from autodiff_gen.lowering.planner import lifetimes
from autodiff_gen.passes.arena_use import liveness
from autodiff_gen.passes.context import Context
from autodiff_gen.targets import board


class Dense(nn.Module):
    """A result takes the memory of another one, which takes the memory of an operand."""

    def __init__(self) -> None:
        super().__init__()
        layers = [(nn.BatchNorm2d(c), nn.ReLU(), nn.Conv2d(c, 4, 3, padding=1)) for c in (8, 12, 16)]
        self.layers = nn.ModuleList([nn.Sequential(*layer) for layer in layers])

    def forward(self, x: Value) -> Value:
        for layer in self.layers:
            x = F.cat([x, layer(x)], 1)
        return x


BODIES: dict[str, Callable[[], tuple[nn.Module, ...]]] = {
    "pooling": lambda: (nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 4, 3)),
    "batch norm": lambda: (nn.BatchNorm2d(8), nn.GELU(), nn.Conv2d(8, 8, 1), nn.BatchNorm2d(8), nn.SiLU()),
    "group norm": lambda: (nn.GroupNorm(2, 8), nn.Tanh(), nn.Conv2d(8, 8, 3, padding=1, groups=8)),
    "dense": lambda: (Dense(), nn.Conv2d(20, 8, 1)),
    "dropout": lambda: (nn.Dropout(0.5), nn.Conv2d(8, 8, 3, stride=2), nn.LeakyReLU()),
}

WIDTHS = {"pooling": 16, "batch norm": 32, "group norm": 32, "dense": 32, "dropout": 32}


def context_of(kernels: tuple[str, ...], budget: int | None = None) -> Context:
    return Context(backends=registry.for_board(board.load("stm32"), list(kernels)), budget=budget)


def stages(body: str, context: Context) -> Iterator[tuple[str, IRModule[Any]]]:
    """Each stage's name and result, of a network on images."""
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), *BODIES[body](), nn.AdaptiveAvgPool2d(2), nn.Flatten())
    model = ag.Model.supervised(
        nn.Sequential(net, nn.Linear(WIDTHS[body], 4)),
        (2, 3, 16, 16),
        nn.CrossEntropyLoss(),
        optim.Adam(lr=0.01),
    )
    yield from pipeline.run(pipeline.TARGET, IRModule(tuple(model.entries())), context)


def alive(plan: EntryPlan, context: Context) -> int:
    """The most bytes of its buffers that are alive at one step."""
    placed = lifetimes(plan, context)
    return max(sum(b.bytes for b in placed if b.start <= s.number <= b.end) for s in plan.steps)


@pytest.mark.parametrize("kernels", [("ref",), ("armv7em", "ref")])
@pytest.mark.parametrize("share", [None, 0.8])
@pytest.mark.parametrize("body", BODIES)
def test_the_peak_is_that_of_the_plan(body: str, share: float | None, kernels: tuple[str, ...]) -> None:
    context = context_of(kernels)
    if share is not None:
        *_, (_, module) = stages(body, context)
        context = replace(context, budget=int(share * max(alive(plan, context) for plan in module.entries)))
    found = dict(stages(body, context))
    plans = found["assign_buffers"].entries
    peaks = [liveness(graph, context).peak for graph in found["copy_insertion"].entries]
    assert peaks == pytest.approx([alive(plan, context) for plan in plans], rel=0.001)
    assert [liveness(graph, context).peak for graph in found["tile_and_fuse"].entries] == pytest.approx(
        peaks, rel=0.001
    )
    placed = [
        liveness(graph, context).placed(context.cost.alignment) for graph in found["tile_and_fuse"].entries
    ]
    assert placed == pytest.approx([pipeline.peak_of(plan) for plan in plans], rel=0.002)


@pytest.mark.parametrize("body", BODIES)
def test_no_order_needs_less_than_the_bound(body: str) -> None:
    context = context_of(("ref",))
    until = itertools.takewhile(lambda stage: stage[0] != "fuse_elementwise", stages(body, context))
    found = [liveness(g, context) for _, module in until for g in module.entries]
    assert len(found) > 10
    assert [use.peak for use in found if use.least_height > use.height] == []


def test_copies_that_first_outputs_need_come_first() -> None:
    """The first output reads a copy, which no node of the graph makes, and so does a later one."""
    x, w, u = x_of(4, 6, name="x"), x_of(8, 5, name="w"), x_of(6, 3, name="u")
    hidden = apply("reshape", apply("permute", x, dims=(1, 0)), shape=(3, 8))
    y = apply("matmul", hidden, w)
    z = apply("matmul", apply("tanh", x), u)
    graph = graph_of({"z": z, "y": y}, inputs=(x, w, u))
    use = liveness(graph, replace(context_of(("ref",)), first=("y",)))
    order = [use.computations[k].inside[-1].op.name for k in use.order]
    assert order == ["copy", "matmul", "tanh", "matmul"]


@pytest.mark.parametrize("name", SURVIVORS)
def test_old_states_that_are_read_late_are_no_circle(name: str) -> None:
    """Before copies are inserted: each step comes after those that it reads."""
    graph = rewritten(survivor(name)[0].graph, until="fuse_optimizer")
    use = liveness(graph, context_of(("ref",)))
    assert sorted(use.order) == list(range(len(use.computations))) and use.least_height <= use.height
