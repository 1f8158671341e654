"""Bytes that the steps of a plan find outside a cache, and the batches that are divided for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.host.compiler import Compiler, find_compiler
from autodiff_gen.host.trainer import Trainer
from autodiff_gen.lowering.arena.cache_misses import BLOCK, cache_misses
from autodiff_gen.report.explain import explain
from autodiff_gen.targets.board import BoardSpec, load

LARGE = 1 << 40
WIDTH, LARGEST = 64, 16


def model(between: Callable[[], nn.Module] = nn.Tanh, **options: Any) -> ag.Model:
    """Convolutions of images whose values take more memory than the weights."""
    layers = [nn.Conv2d(3, 16, 3, padding=1), between(), nn.Conv2d(16, 16, 3, padding=1), between()]
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 4))
    given = {"loss": nn.CrossEntropyLoss(), "optimizer": optim.SGD(lr=0.1), **options}
    return ag.Model.supervised(net, input=(LARGEST, 3, 16, 16), **given)


def recurrent() -> ag.Model:
    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru, self.head = nn.GRU(8, WIDTH, batch_first=True), nn.Linear(WIDTH, 4)

        def forward(self, x: Any) -> Any:
            return self.head(self.gru(x)[0][:, -1])

    return ag.Model.supervised(
        Recurrent(), input=(LARGEST, 40, 8), loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=0.1)
    )


def host(size: int) -> BoardSpec:
    """The host with AVX2 and a cache of so many bytes."""
    board = load("host_avx2")
    assert board.cost.cache is not None
    return replace(board, cost=replace(board.cost, cache=replace(board.cost.cache, bytes=size)))


def plan_of(made: ag.Model, board: BoardSpec) -> Any:
    return compile_model(made, "m", ["ref"], board).entries[0].plan


def test_each_byte_is_outside_once_where_the_cache_holds_all() -> None:
    plan = plan_of(model(), host(LARGE))
    found = cache_misses(plan, LARGE)
    arena = sum(p.peak for p in plan.plans.values())
    states = sum(s.type.bytes for s in set(plan.states.values()))
    given = sum(v.type.bytes for v in plan.graph.inputs)
    objects = len(plan.states) + len(plan.outputs) + len(plan.graph.inputs) + len(plan.plans)
    assert arena + given <= found <= arena + states + given + objects * BLOCK


def test_more_is_outside_of_a_smaller_cache() -> None:
    plan = plan_of(model(), host(LARGE))
    found = [cache_misses(plan, size) for size in (BLOCK, 1 << 16, 1 << 18, 1 << 20, LARGE)]
    assert found == sorted(found, reverse=True) and found[0] > 3 * found[-1]


def test_a_divided_batch_finds_its_values_in_the_cache() -> None:
    whole, divided = plan_of(model(), host(LARGE)), plan_of(model(), host(1 << 18))
    assert whole.samples == 0 and 0 < divided.samples < LARGEST
    assert cache_misses(divided, 1 << 18) < cache_misses(whole, 1 << 18) / 2


def test_training_is_that_of_the_whole_batch() -> None:
    whole, divided = (
        Trainer(
            compile_model(model(), "m", ["ref"], host(size)), Compiler(find_compiler(), "-O1"), poison=True
        )
        for size in (LARGE, 1 << 18)
    )
    assert divided.nbytes < whole.nbytes / 2
    rng = np.random.default_rng(3)
    for n in (1, 3, LARGEST - 1, LARGEST):
        x = rng.standard_normal((n, 3, 16, 16)).astype(np.float32)
        y = rng.integers(0, 4, n).astype(np.uint8)
        assert divided.train_step(x, y) == pytest.approx(whole.train_step(x, y), rel=1e-5)
        np.testing.assert_allclose(divided.predict(x), whole.predict(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: model(split=True), id="steps in parts; the loop would be one part"),
        pytest.param(lambda: model(lambda: nn.BatchNorm2d(16)), id="samples that depend on each other"),
        pytest.param(recurrent, id="weights that each part would read for all times"),
    ],
)
def test_batches_that_are_not_divided(make: Any) -> None:
    plan = plan_of(make(), host(1 << 18))
    assert sum(p.peak for p in plan.plans.values()) > 1 << 18 and plan.samples == 0


def test_explain_says_what_the_batch_is_divided_for() -> None:
    board = host(1 << 18)
    program = compile_model(model(), "m", ["ref"], board)
    text = explain(program, board, None)
    samples = program.entries[0].plan.samples
    assert (
        f"train_step computes its batch {samples} sample{'s' * (samples > 1)} at a time, for the cache"
        in text
    )
