"""Slices of what convolutions compute are computed as such: training stays PyTorch's, and nothing is dropped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.ir.graph import Graph
from autodiff_gen.ir.op_kinds import Leaf, View, ViewKind
from autodiff_gen.ir.traits import view_kind
from autodiff_gen.passes.context import Context
from autodiff_gen.passes.crop_propagation import crop_propagation


def causal(of: Any) -> Any:
    """Two causal convolutions as PyTorch has none: with padding on both sides, the last results dropped."""

    class Causal(of.Module):  # type: ignore[misc]
        def __init__(self, c: int, o: int, dilation: int) -> None:
            super().__init__()
            self.conv = of.Conv1d(c, o, 3, padding=2 * dilation, dilation=dilation)
            self.act, self.surplus = of.ReLU(), 2 * dilation

        def forward(self, x: Any) -> Any:
            return self.act(self.conv(x)[:, :, : -self.surplus])

    return of.Sequential(Causal(4, 8, 1), Causal(8, 8, 2), of.Flatten(), of.Linear(8 * 12, 3))


def trimmed(of: Any) -> Any:
    """Borders of images are cut off after two convolutions, along both axes."""

    class Trimmed(of.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.up, self.down = (
                of.ConvTranspose2d(4, 6, 3, stride=2),
                of.Conv2d(6, 5, 3, padding=2),
            )
            self.flat, self.out = of.Flatten(), of.Linear(5 * 6 * 7, 3)

        def forward(self, x: Any) -> Any:
            y = self.up(x.reshape(-1, 4, 3, 4))[:, :, 1:, 1:]
            return self.out(self.flat(self.down(y)[:, :, 1:-1, 2:-1]))

    return Trimmed()


NETWORKS = {"causal": (causal, (4, 12)), "trimmed": (trimmed, (4, 12))}


def model(name: str, batch: int = 2) -> ag.Model:
    network, shape = NETWORKS[name]
    return ag.Model.supervised(network(nn), (batch, *shape), nn.CrossEntropyLoss(), optim.SGD(lr=0.1))


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("name", NETWORKS)
def test_training_equals_pytorchs(name: str, rng: np.random.Generator) -> None:
    import torch

    network, shape = NETWORKS[name]
    trainer = model(name).on_host(kernels="ref")
    mirror = network(torch.nn)
    mirror.load_state_dict({k: torch.tensor(v) for k, v in trainer.state_dict().items()})
    step = torch.optim.SGD(mirror.parameters(), lr=0.1)
    for _ in range(4):
        x, label = rng.normal(size=(2, *shape)).astype(np.float32), rng.integers(0, 3, 2)
        loss = torch.nn.functional.cross_entropy(mirror(torch.tensor(x)), torch.tensor(label))
        step.zero_grad()
        loss.backward()
        step.step()
        assert trainer.train_step(x, label) == pytest.approx(loss.item(), rel=1e-5)
    for key, value in mirror.state_dict().items():
        np.testing.assert_allclose(trainer.state_dict()[key], value, rtol=1e-4, atol=1e-6, err_msg=key)


@pytest.mark.parametrize("name", NETWORKS)
def test_nothing_is_computed_that_is_dropped(name: str) -> None:
    (graph,) = (g for g in model(name).entries() if g.name == "predict")
    sliced = [n.operands[0] for n in graph.of(View) if view_kind(n) is ViewKind.WINDOW]
    assert [v for v in sliced if not isinstance(v.node.op.lower, Leaf)] == []


def test_what_is_read_as_a_whole_too_is_computed_as_a_whole() -> None:
    x, w = ag.Input("x", (1, 2, 5, 5)), ag.Param("w", np.ones((3, 2, 3, 3), np.float32))
    y = ag.functional.conv2d(x, w, padding=1)
    graph = Graph("f", (x,), outputs={"part": y[:, :, 1:], "whole": y})
    assert crop_propagation(graph, Context()) is graph
