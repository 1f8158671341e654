"""Gradients of weights that are used several times, which kernels add up in one place: that training stays PyTorch's,
also where what holds no value is NaN, and the smaller arena."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from checkout import ROOT
from training_comparison import trains_as_pytorchs

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.program import Program
from autodiff_gen.host.compiler import Compiler, find_compiler
from autodiff_gen.host.trainer import Trainer
from autodiff_gen.ir.added_terms import added_to
from autodiff_gen.lowering import left_out_stages
from autodiff_gen.passes.memory.accumulate_gradients import accumulate_gradients
from autodiff_gen.targets import board

BOARD = str(ROOT / "bench" / "qemu" / "mps2_an386_psram.toml")
CLASSES = 5


def images(nn: Any) -> Any:
    """Convolutions of different kinds that are repeated."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.again = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
            self.each = nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False)
            self.pool, self.head = nn.AvgPool2d(8), nn.Linear(8, CLASSES)

        def forward(self, x: Any) -> Any:
            x = self.first(x)
            for _ in range(5):
                x = x + nn.Tanh()(self.each(nn.Tanh()(self.again(x))))
            return self.head(self.pool(x).flatten(1))

    return Net()


def steps(nn: Any) -> Any:
    """A recurrent network whose loop is in Python, and its result after each step."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inputs, self.state = nn.Linear(24, 16), nn.Linear(16, 16, bias=False)
            self.head = nn.Linear(16, CLASSES)

        def forward(self, x: Any) -> Any:
            rows = x.flatten(1).reshape(-1, 8, 24)
            state = self.inputs(rows[:, 0])
            scores = self.head(state)
            for k in range(1, 8):
                state = nn.Tanh()(self.inputs(rows[:, k]) + self.state(state))
                scores = scores + self.head(nn.Tanh()(state))
            return scores

    return Net()


def shared(nn: Any) -> Any:
    """An encoder of two images, whose features are compared."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.pool = nn.Conv2d(3, 8, 3, padding=1), nn.MaxPool2d(2)
            self.features, self.head = nn.Linear(128, 12), nn.Linear(12, CLASSES)

        def forward(self, x: Any) -> Any:
            a, b = (self.features(self.pool(nn.ReLU()(self.conv(y))).flatten(1)) for y in (x, x * x))
            return self.head((a - b) * (a - b))

    return Net()


RULES: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "SGD": (lambda module: module.SGD, {"lr": 0.05}),
    "momentum": (lambda module: module.SGD, {"lr": 0.02, "momentum": 0.9, "weight_decay": 0.01}),
    "Adam": (lambda module: module.Adam, {"lr": 0.01}),
}


def program(net: nn.Module, batch: int, rule: str = "SGD", **options: Any) -> Program:
    of, arguments = RULES[rule]
    made = ag.Model.supervised(
        net, (batch, 3, 8, 8), nn.CrossEntropyLoss(), of(optim)(**arguments), **options
    )
    return compile_model(made, "model", ["ref"], board.load(BOARD), ram=1 << 24)


def sums(made: Program) -> int:
    """How many products are added to arrays other than states."""
    plan = made.entries[0].plan
    old = [added_to(s.node) for s in plan.steps]
    return sum(v is not None and v.base not in plan.states for v in old)


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize(
    ("network", "batch", "rule", "options"),
    [
        (images, 1, "SGD", {}),
        (images, 1, "Adam", {"clip_grad_norm": 1.0}),
        (images, 4, "momentum", {"guard": "gradients"}),
        (steps, 4, "SGD", {"guard": "gradients"}),
        (steps, 16, "Adam", {"guard": "loss"}),
        (steps, 16, "momentum", {}),
        (shared, 1, "momentum", {"guard": "loss"}),
        (shared, 4, "SGD", {"clip_grad_norm": 0.5}),
    ],
)
def test_training_equals_pytorchs(
    network: Callable[[Any], Any], batch: int, rule: str, options: dict[str, Any]
) -> None:
    import torch

    made = program(network(nn), batch, rule, **options)
    assert sums(made) > 0
    trainer = Trainer(made, Compiler(find_compiler(None), ""), poison=True)
    twin = network(torch.nn)
    of, arguments = RULES[rule]
    step = of(torch.optim)(twin.parameters(), **arguments)
    rng = np.random.default_rng(5)
    batches = [
        (rng.normal(size=(batch, 3, 8, 8)).astype(np.float32), rng.integers(0, CLASSES, batch))
        for _ in range(4)
    ]
    trains_as_pytorchs(trainer, twin, step, batches, options.get("clip_grad_norm"))


@pytest.mark.parametrize(
    ("network", "batch", "share"), [(images, 1, 0.95), (steps, 16, 0.75), (shared, 1, 1.0)]
)
def test_arenas(network: Callable[[Any], Any], batch: int, share: float) -> None:
    """No larger than where all products wait for each other."""
    made = program(network(nn), batch)
    with left_out_stages.without([accumulate_gradients.__name__]):
        assert made.arena_words <= share * program(network(nn), batch).arena_words


def test_sums_that_are_larger_than_their_products_are_not_stored() -> None:
    """Of a sample, the weights of a loop take more memory than what all of its steps store, of many samples less."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.state, self.head = nn.Linear(192, 192, bias=False), nn.Linear(192, CLASSES)

        def forward(self, x: Any) -> Any:
            x = x.flatten(1)
            for _ in range(8):
                x = nn.Tanh()(self.state(x))
            return self.head(x)

    assert sums(program(Net(), 1)) == 0
    assert sums(program(Net(), 128)) == 7
