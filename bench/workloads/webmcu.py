"""The CNN that webmcu-ai trains on an ESP32-S3 with a camera: 3 x 64 x 64, 3 classes; Adam, batch 6."""

from __future__ import annotations

from typing import Any

from common import Task

from autodiff_gen import optim


def network(nn: Any) -> Any:
    return nn.Sequential(
        *(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(4, 8, 3), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(8 * 29 * 29, 3)),
    )


TASK = Task(network, (3, 64, 64), classes=3)
model, batch = TASK.model(6, optim.Adam(lr=0.0003)), TASK.batches(6)
