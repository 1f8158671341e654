"""A network with dropout: images of 1 x 16 x 16, two convolutions, momentum. The first layer is frozen, as in transfer
learning, and the guard checks all gradients."""

from __future__ import annotations

from typing import Any

from common import Task

import autodiff_gen as ag
from autodiff_gen import nn, optim


def network(nn: Any) -> Any:
    return nn.Sequential(
        *(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout2d(0.1)),
        *(nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.Dropout(0.2), nn.MaxPool2d(2), nn.Flatten()),
        *(nn.Linear(256, 64), nn.Tanh(), nn.Dropout(0.5), nn.Linear(64, 10)),
    )


TASK = Task(network, (1, 16, 16), classes=10)
net = network(nn)
for parameter in net[0].parameters():
    parameter.requires_grad_(False)
model = ag.Model.supervised(
    net,
    input=(4, *TASK.shape),
    loss=nn.CrossEntropyLoss(),
    optimizer=optim.SGD(lr=0.001, momentum=0.9),
    guard="gradients",
)
batch = TASK.batches(4)
