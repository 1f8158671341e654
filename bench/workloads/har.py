"""A 1-D CNN for human activity recognition (UCI HAR, Anguita et al. 2013): 128 samples of 9 inertial channels, 6
activities; the network and the optimizer of es-ude's OnDeviceTraining."""

from __future__ import annotations

from typing import Any

from common import Task

from autodiff_gen import optim


def network(nn: Any) -> Any:
    return nn.Sequential(
        *(nn.Conv1d(9, 16, 7, padding=3), nn.ReLU(), nn.MaxPool1d(2)),
        *(nn.Conv1d(16, 32, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2)),
        *(nn.Conv1d(32, 64, 3, padding=1), nn.ReLU()),
        *(nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(64, 6)),
    )


TASK = Task(network, (9, 128), classes=6)
model, batch = TASK.model(1, optim.SGD(lr=0.01, momentum=0.9)), TASK.batches(1)
