"""What compiling a deep network costs: function calls, which depend on neither the machine nor its load."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.ir.node import Value
from autodiff_gen.passes import arena_use
from autodiff_gen.targets import board


class Residual(nn.Module):
    """One layer that is applied many times."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.layer, self.depth = nn.Linear(4, 4), depth

    def forward(self, x: Value) -> Value:
        for _ in range(self.depth):
            x = F.tanh(self.layer(x)) + x
        return x


def perceptron(depth: int) -> nn.Module:
    return nn.Sequential(*(layer for _ in range(depth) for layer in (nn.Linear(16, 16), nn.ReLU())))


def convolutions(depth: int) -> nn.Module:
    blocks = [
        layer
        for _ in range(depth)
        for layer in (nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU6())
    ]
    return nn.Sequential(*blocks, nn.Flatten())


def built(net: Callable[[int], nn.Module], shape: tuple[int, ...], **options: Any) -> Callable[[int], None]:
    def build(depth: int) -> None:
        optimizer = options.get("optimizer", optim.SGD)(lr=0.01)
        more = {k: v for k, v in options.items() if k != "optimizer"}
        model = ag.Model.supervised(net(depth), shape, nn.MSELoss(), optimizer, **more)
        emit(compile_model(model, "deep"))

    return build


def calls(function: Callable[[int], None], argument: int) -> int:
    """How many Python functions are called."""
    count = 0

    def note(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        function(argument)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    "build",
    [
        pytest.param(built(perceptron, (1, 16), optimizer=optim.Adam), id="perceptron"),
        pytest.param(built(Residual, (1, 4)), id="one layer, many times"),
        pytest.param(built(Residual, (1, 4), guard="gradients", clip_grad_norm=1.0), id="guard and clipping"),
        pytest.param(built(convolutions, (1, 4, 8, 8)), id="batch norm"),
    ],
)
def test_twice_the_layers_cost_about_twice_the_calls(build: Callable[[int], None]) -> None:
    build(2)  # computes cached results
    assert calls(build, 32) <= 2.2 * calls(build, 16)


def test_memory_is_weighed_for_few_more_calls() -> None:
    """Values are computed again for a smaller arena on boards with little memory: of a deep network no graphs are
    measured that differ by less than a hundredth of its values."""

    def count(target: board.BoardSpec | None) -> int:
        model = ag.Model.supervised(perceptron(128), (1, 16), nn.MSELoss(), optim.Adam(lr=0.01))
        return calls(lambda depth: compile_model(model, "deep", board=target), 128)

    assert count(board.load("mps2_an386")) <= 1.3 * count(None)


def test_no_graph_is_analysed_whose_values_surely_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Intermediate values of the updates are many times the budget together, but only few of them are alive at once."""
    analysed: list[str] = []
    monkeypatch.setattr(arena_use, "_liveness", lambda graph, context: analysed.append(graph.name))
    model = ag.Model.supervised(perceptron(32), (1, 16), nn.MSELoss(), optim.Adam(lr=0.01))
    compile_model(model, "deep", board=board.load("host"), ram=196608)
    assert not analysed


def test_no_cycles_are_searched_for_while_a_model_is_built() -> None:
    """Objects that are allocated then are kept: the search for cycles took half of the time."""
    searches: list[str] = []
    given = ag.Model.supervised(perceptron(16), (1, 16), nn.MSELoss(), optim.Adam(lr=0.01))
    gc.callbacks.append(note := lambda phase, info: searches.append(phase))
    gc.enable()
    try:
        ag.Model(given.inputs, given.targets, given.outputs, given.loss, optim.Adam(lr=0.01))
    finally:
        gc.disable()
        gc.callbacks.remove(note)
    assert len(searches) < 10
