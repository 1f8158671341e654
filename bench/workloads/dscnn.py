"""DS-CNN, the keyword spotter of MLPerf Tiny (Zhang et al. 2017, size S): 49 frames of 10 coefficients, 12 words."""

from __future__ import annotations

from typing import Any

from common import Task, separable


def network(nn: Any) -> Any:
    return nn.Sequential(
        nn.Conv2d(1, 64, (10, 4), stride=2, padding=(5, 1), bias=False),
        *(nn.BatchNorm2d(64), nn.ReLU()),
        *(layer for _ in range(4) for layer in separable(nn, 64, 64)),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 12)),
    )


TASK = Task(network, (1, 49, 10), classes=12)
model, batch = TASK.model(1), TASK.batches(1)
