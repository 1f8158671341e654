"""Normalisation layers: a model with each, trained step by step beside PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.errors import ModelError

STEPS = 20
LAYERS: list[tuple[str, Callable[[Any], Any]]] = [
    ("layer_norm", lambda nn: nn.LayerNorm(12)),
    ("layer_norm_without_bias", lambda nn: nn.LayerNorm(12, eps=1e-3, bias=False)),
    ("layer_norm_plain", lambda nn: nn.LayerNorm([12], elementwise_affine=False)),
    ("rms_norm", lambda nn: nn.RMSNorm(12)),
    ("rms_norm_plain", lambda nn: nn.RMSNorm(12, eps=1e-4, elementwise_affine=False)),
    ("group_norm", lambda nn: nn.GroupNorm(3, 12)),
    ("group_norm_plain", lambda nn: nn.GroupNorm(4, 12, affine=False)),
]


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("layer", [f for _, f in LAYERS], ids=[name for name, _ in LAYERS])
def test_steps_of_a_model_equal_pytorchs(layer: Callable[[Any], Any]) -> None:
    import torch

    net = nn.Sequential(nn.Linear(5, 12), layer(nn), nn.ReLU(), nn.Linear(12, 3))
    rate = optim.SGD(net.parameters(), lr=0.1)
    trainer = ag.Model.supervised(net, input=(6, 5), loss=nn.CrossEntropyLoss(), optimizer=rate).on_host()
    twin = torch.nn.Sequential(
        torch.nn.Linear(5, 12), layer(torch.nn), torch.nn.ReLU(), torch.nn.Linear(12, 3)
    )
    twin.load_state_dict({k: torch.tensor(v) for k, v in trainer.state_dict().items()})
    step = torch.optim.SGD(twin.parameters(), lr=0.1)
    rng = np.random.default_rng(5)
    for k in range(STEPS):
        rows = 1 + k % 6  # any number of rows up to the batch
        x = rng.normal(size=(rows, 5)).astype(np.float32)
        label = rng.integers(0, 3, rows)
        loss = torch.nn.functional.cross_entropy(twin(torch.tensor(x)), torch.tensor(label))
        step.zero_grad()
        loss.backward()
        step.step()
        assert trainer.train_step(x, label) == pytest.approx(loss.item(), rel=1e-5, abs=1e-6)
    for name, value in twin.state_dict().items():
        np.testing.assert_allclose(trainer.state_dict()[name], value.numpy(), rtol=1e-5, atol=1e-5)


REJECTED: list[tuple[Callable[[], Any], str]] = [
    (lambda: nn.LayerNorm(0), r"^LayerNorm: normalized_shape=0 must be integers of at least 1$"),
    (lambda: nn.RMSNorm(()), r"^RMSNorm: normalized_shape=\(\) must be"),
    (lambda: nn.GroupNorm(5, 12), r"^GroupNorm: num_channels=12 cannot be divided into num_groups=5 groups$"),
]


@pytest.mark.parametrize("build, message", REJECTED)
def test_rejected_in_one_line(build: Callable[[], Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        build()
