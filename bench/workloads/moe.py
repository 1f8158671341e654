"""A mixture of experts: images of 3 x 16 x 16, four experts of a convolution each, weighted by a gate."""

from __future__ import annotations

from typing import Any

from common import Task

from autodiff_gen import functional as F

EXPERTS, CHANNELS = 4, 16


def network(nn: Any) -> Any:
    class Mixture(nn.Module):
        """The sum of the experts' outputs, each times the softmax of its score."""

        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Sequential(nn.Conv2d(3, CHANNELS, 3, stride=2, padding=1), nn.ReLU())
            self.experts = nn.ModuleList(
                nn.Sequential(nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1), nn.ReLU()) for _ in range(EXPERTS)
            )
            self.gate = nn.Linear(CHANNELS, EXPERTS)
            self.head = nn.Linear(CHANNELS, 10)

        def forward(self, x: Any) -> Any:
            x = self.stem(x)
            weights = F.softmax(self.gate(x.mean((2, 3))), 1)
            outputs = F.stack([expert(x) for expert in self.experts], 1)
            mixed = (outputs * weights.reshape(-1, EXPERTS, 1, 1, 1)).sum(1)
            return self.head(mixed.mean((2, 3)))

    return Mixture()


TASK = Task(network, (3, 16, 16), classes=10)
model, batch = TASK.model(1), TASK.batches(1)
