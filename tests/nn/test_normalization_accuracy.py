"""The gradients of normalised networks in float32 are as exact as PyTorch's: deep networks amplify rounding errors from
layer to layer, errors of the statistics most of all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import nn, optim

BLOCKS, CHANNELS, SIZE = 8, 8, 32

NORMS: dict[str, Callable[[Any], Any]] = {
    "batch": lambda nn: nn.BatchNorm2d(CHANNELS),
    "instance": lambda nn: nn.InstanceNorm2d(CHANNELS, affine=True),
    "group": lambda nn: nn.GroupNorm(2, CHANNELS),
    "layer": lambda nn: nn.LayerNorm((CHANNELS, SIZE, SIZE)),
}


def network(nn: Any, norm: Callable[[Any], Any]) -> Any:
    """Smooth activations: of two networks with relu, one may have a mask that another has not, of a value near 0."""
    layers = [nn.Conv2d(3, CHANNELS, 3, padding=1, bias=False), norm(nn), nn.Softplus()]
    for _ in range(BLOCKS - 1):
        layers += [nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, bias=False), norm(nn), nn.Softplus()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(CHANNELS, 4))


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("norm", NORMS)
def test_errors_are_those_of_pytorch(norm):
    import torch

    def of_torch(dtype):
        twin = network(torch.nn, NORMS[norm]).to(dtype)
        twin.load_state_dict({k: torch.tensor(v) for k, v in weights.items()})
        scores = twin(torch.tensor(x).to(dtype))
        torch.nn.functional.cross_entropy(scores, torch.tensor(labels)).backward()
        return {k: p.grad.double().numpy() for k, p in twin.named_parameters()}

    def error(gradients):
        square = sum(((gradients[k] - exact[k]) ** 2).sum() for k in exact)
        return float(np.sqrt(square / sum((g**2).sum() for g in exact.values())))

    shape = (2, 3, SIZE, SIZE)
    model = ag.Model.supervised(
        network(nn, NORMS[norm]), input=shape, loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=1024.0)
    )
    trainer = model.on_host(kernels="ref")
    weights = trainer.state_dict()
    errors, of_pytorch = [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x = rng.random(shape, dtype=np.float32)
        labels = rng.integers(0, 4, 2)
        exact = of_torch(torch.float64)
        trainer.load_state_dict(weights)
        trainer.train_step(x, labels.astype(np.uint8))
        after = trainer.state_dict()
        errors.append(error({k: (np.float64(weights[k]) - after[k]) / 1024 for k in exact}))
        of_pytorch.append(error(of_torch(torch.float32)))
    assert np.median(errors) <= 2 * np.median(of_pytorch)
