"""A GRU keyword spotter (Zhang et al. 2017): 49 frames of 10 coefficients, 64 units, 12 words."""

from __future__ import annotations

from typing import Any

from common import Task


def network(nn: Any) -> Any:
    class Spotter(nn.Module):
        """The last hidden state is classified."""

        def __init__(self) -> None:
            super().__init__()
            self.gru = nn.GRU(10, 64, batch_first=True)
            self.head = nn.Linear(64, 12)

        def forward(self, x: Any) -> Any:
            return self.head(self.gru(x)[0][:, -1])

    return Spotter()


TASK = Task(network, (49, 10), classes=12)
model, batch = TASK.model(1), TASK.batches(1)
