"""Small models for tests."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import autodiff_gen as ag
from autodiff_gen import nn, optim


def mlp(*sizes: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for k, (a, b) in enumerate(pairwise(sizes)):
        layers += [nn.Linear(a, b)] + ([nn.Tanh()] if k < len(sizes) - 2 else [])
    return nn.Sequential(*layers)


def small_model(rule: str, options: dict[str, Any]) -> ag.Model:
    return ag.Model.supervised(mlp(3, 4, 2), (5, 3), nn.MSELoss(), getattr(optim, rule)(**options))


def small_classifier(
    batch: int,
    layers: tuple[int, int, int] = (6, 5, 3),
    optimizer: optim.Optimizer | None = None,
    loss: nn.Module | None = None,
    **options: Any,
) -> ag.Model:
    net = nn.Sequential(nn.Linear(*layers[:2]), nn.ReLU(), nn.Linear(*layers[1:]))
    optimizer = optimizer or optim.SGD(lr=0.1)
    return ag.Model.supervised(
        net, input=(batch, layers[0]), loss=loss or nn.CrossEntropyLoss(), optimizer=optimizer, **options
    )
