"""Copies for kernels that views of one value share, and loops of the backward pass: scores of graph attention, which
loops compute with the heads innermost and products read head by head."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from training_comparison import trains_as_pytorchs

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.program import Program
from autodiff_gen.host.compiler import Compiler, find_compiler
from autodiff_gen.host.trainer import Trainer
from autodiff_gen.lowering.planner import lifetimes
from autodiff_gen.passes.context import Context
from autodiff_gen.targets import board

NODES, HEADS, WIDTH, CLASSES, LAYERS = 12, 3, 4, 5, 2
FEATURES = HEADS * WIDTH


def network(nn: Any) -> Any:
    """Layers of graph attention (Velickovic et al. 2018) over a batch of one complete graph."""

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.project = nn.Linear(FEATURES, FEATURES, bias=False)
            self.source = nn.Linear(WIDTH, HEADS, bias=False)
            self.target = nn.Linear(WIDTH, HEADS, bias=False)
            self.activation = nn.LeakyReLU(0.2)

        def forward(self, x: Any) -> Any:
            h = self.project(x).reshape(NODES, HEADS, WIDTH).permute(1, 0, 2)
            source, target = (
                (h * layer.weight.reshape(HEADS, 1, WIDTH)).sum(2).reshape(HEADS, NODES, 1)
                for layer in (self.source, self.target)
            )
            scores = source + target.permute(0, 2, 1)
            return (self.activation(scores).softmax(2) @ h).permute(1, 0, 2).reshape(NODES, FEATURES)

    return nn.Sequential(*(Attention() for _ in range(LAYERS)), nn.Linear(FEATURES, CLASSES))


def compiled(name: str) -> Program:
    x, label = ag.Input("x", (NODES, FEATURES)), ag.Input("label", (NODES,), "u8")
    scores = network(nn)(x)
    loss = ag.functional.cross_entropy(scores, label)
    model = ag.Model([x], [label], {"scores": scores}, loss, optim.SGD(lr=0.5))
    return compile_model(model, "model", ["ref"], board.load(name))


def most_alive(program: Program, bytes: int) -> int:
    """The most buffers of this size that are alive at a step of training."""
    (plan,) = (e.plan for e in program.entries if e.name == "train_step")
    placed = [b for b in lifetimes(plan, Context(backends=program.backends)) if b.bytes == bytes]
    return max(sum(b.start <= step.number <= b.end for b in placed) for step in plan.steps)


def test_each_layer_stores_its_scores_once() -> None:
    """... and one of them has a gradient at the same time."""
    assert most_alive(compiled("mps2_an386"), 4 * HEADS * NODES * NODES) == LAYERS + 1


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("name", ["mps2_an386", "host_avx2"])
def test_training_equals_pytorchs(name: str) -> None:
    import torch

    twin = network(torch.nn)
    rng = np.random.default_rng(2)
    batches = [
        (rng.normal(size=(NODES, FEATURES)).astype(np.float32), rng.integers(0, CLASSES, NODES))
        for _ in range(4)
    ]
    trainer = Trainer(compiled(name), Compiler(find_compiler(None), ""))
    trains_as_pytorchs(trainer, twin, torch.optim.SGD(twin.parameters(), lr=0.5), batches)


class _Twice(nn.Module):
    """One layer of an image and of its transpose."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = nn.Linear(192, 64), nn.Linear(64, CLASSES)

    def forward(self, x: Any) -> Any:
        turned = x.permute(0, 2, 1).reshape(8, 192)
        return self.head(self.layer(x.reshape(8, 192)) + self.layer(turned).tanh())


def test_a_copy_of_an_input_is_made_again_in_the_backward_pass() -> None:
    """Also where it is a reshape that fails, whose node both passes share."""
    loss = nn.CrossEntropyLoss()
    model = ag.Model.supervised(_Twice(), input=(8, 12, 16), loss=loss, optimizer=optim.Adam())
    program = compile_model(model, "m", ["ref"], board.load("mps2_an386"))
    (plan,) = (e.plan for e in program.entries if e.name == "train_step")
    size = 4 * 8 * 192
    copies = [b for b in lifetimes(plan, Context(backends=program.backends)) if b.bytes == size]
    assert len(copies) == 2 and max(b.end - b.start for b in copies) < len(plan.steps) // 2
