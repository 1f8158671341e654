"""Dropout of a flattened image: images of 1 x 16 x 16, a convolution, and dropout before the linear layer that reads
all of its elements; momentum."""

from __future__ import annotations

from typing import Any

from common import Task

import autodiff_gen as ag
from autodiff_gen import nn, optim


def network(nn: Any) -> Any:
    return nn.Sequential(
        *(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.5)),
        *(nn.Linear(512, 32), nn.ReLU(), nn.Dropout(0.25), nn.Linear(32, 10)),
    )


TASK = Task(network, (1, 16, 16), classes=10)
model = ag.Model.supervised(
    network(nn),
    input=(8, *TASK.shape),
    loss=nn.CrossEntropyLoss(),
    optimizer=optim.SGD(lr=0.001, momentum=0.9),
)
batch = TASK.batches(8)
