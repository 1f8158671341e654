"""Masks of a bit for each element: where they take the place of a value, that training stays PyTorch's, and that the
arena becomes smaller."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.codegen.program import Program
from autodiff_gen.host.compiler import Compiler, find_compiler
from autodiff_gen.host.trainer import Trainer
from autodiff_gen.lowering import left_out_stages
from autodiff_gen.passes.memory.pack_masks import pack_masks
from autodiff_gen.targets import board

SIDE = 6


def network(nn: Any, activation: str, channels: int = 8, weights: bool = False) -> Any:
    """Three convolutions; only the first one trains unless `weights`."""
    layers = [nn.Conv2d(channels, channels, 3, padding=1) for _ in range(3)]
    for layer in layers[1:]:
        layer.requires_grad_(weights)
    parts = [part for layer in layers for part in (layer, getattr(nn, activation)())]
    return nn.Sequential(*parts[:-1], nn.AvgPool2d(SIDE), nn.Flatten())


def model(net: nn.Module, batch: int = 2, channels: int = 8) -> ag.Model:
    return ag.Model.supervised(
        net, input=(batch, channels, SIDE, SIDE), loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=0.5)
    )


def program(net: nn.Module, **options: Any) -> Program:
    return compile_model(model(net, **options), "model", ["ref"], board.load("stm32"))


def is_packed(net: nn.Module, **options: Any) -> bool:
    return "ag_has_bit(" in emit(program(net, **options))["model.c"]


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("activation", ["ReLU", "ReLU6", "Hardtanh", "LeakyReLU"])
def test_training_equals_pytorchs(activation: str, batch: int) -> None:
    import torch

    net = network(nn, activation)
    assert is_packed(net, batch=batch)
    trainer = Trainer(program(net, batch=batch), Compiler(find_compiler(None), ""))
    twin = network(torch.nn, activation)
    twin.load_state_dict({k: torch.tensor(v) for k, v in trainer.state_dict().items() if k[0].isdigit()})
    step = torch.optim.SGD(twin.parameters(), lr=0.5)
    rng, rows = np.random.default_rng(14), min(batch, 2)  # fewer than the largest batch
    for _ in range(4):
        x = rng.normal(size=(rows, 8, SIDE, SIDE)).astype(np.float32)
        label = rng.integers(0, 8, rows)
        loss = torch.nn.functional.cross_entropy(twin(torch.tensor(x)), torch.tensor(label))
        step.zero_grad()
        loss.backward()
        step.step()
        assert trainer.train_step(x, label) == pytest.approx(loss.item(), rel=1e-5)
    for name, value in twin.state_dict().items():
        np.testing.assert_allclose(trainer.state_dict()[name], value, rtol=1e-4, atol=1e-6, err_msg=name)


def test_the_arena_becomes_smaller() -> None:
    packed = program(network(nn, "ReLU")).arena_words
    with left_out_stages.without([pack_masks.__name__]):
        assert packed < program(network(nn, "ReLU")).arena_words


def test_values_that_the_backward_pass_reads_are_not_packed() -> None:
    """The gradient of the next layer's weights reads the activation."""
    assert not is_packed(network(nn, "ReLU", weights=True))


def test_elements_that_do_not_fill_bytes_are_not_packed() -> None:
    assert not is_packed(network(nn, "ReLU", channels=7), channels=7, batch=1)


def test_masks_off_the_peak_are_not_packed() -> None:
    """The peak of the arena is in layers before those that train."""
    wide = nn.Conv2d(8, 64, 1).requires_grad_(False)
    narrow = nn.Conv2d(64, 8, 1).requires_grad_(False)
    assert not is_packed(nn.Sequential(wide, nn.Tanh(), narrow, network(nn, "ReLU")))
