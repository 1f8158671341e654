"""Selective kernels (Li et al. 2019): images of 3 x 32 x 32, a block that weighs a 3x3 and a 5x5 branch by channel."""

from __future__ import annotations

from typing import Any

from common import Task, conv_norm

from autodiff_gen import functional as F

CHANNELS, REDUCED = 16, 8


def network(nn: Any) -> Any:
    class Block(nn.Module):
        """The branches' sum, pooled, gives a softmax over the branches for each channel."""

        def __init__(self) -> None:
            super().__init__()
            self.branches = nn.ModuleList(
                nn.Sequential(*conv_norm(nn, CHANNELS, CHANNELS, kernel), nn.ReLU()) for kernel in (3, 5)
            )
            self.reduce = nn.Linear(CHANNELS, REDUCED)
            self.select = nn.Linear(REDUCED, 2 * CHANNELS)

        def forward(self, x: Any) -> Any:
            outputs = F.stack([branch(x) for branch in self.branches], 1)
            pooled = F.relu(self.reduce(outputs.sum(1).mean((2, 3))))
            weights = F.softmax(self.select(pooled).reshape(-1, 2, CHANNELS), 1)
            return (outputs * weights.reshape(-1, 2, CHANNELS, 1, 1)).sum(1)

    return nn.Sequential(
        *(nn.Conv2d(3, CHANNELS, 3, stride=2, padding=1), nn.ReLU(), Block()),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(CHANNELS, 10)),
    )


TASK = Task(network, (3, 32, 32), classes=10)
model, batch = TASK.model(1), TASK.batches(1)
