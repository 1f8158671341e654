"""A neural ODE (Chen et al. 2018): 20 steps of Euler's method, all with the same two layers; 16 values, 4 classes."""

from __future__ import annotations

from typing import Any

from common import Task

STEPS, WIDTH, HIDDEN = 20, 16, 32


def network(nn: Any) -> Any:
    class Flow(nn.Module):
        """x + f(x) / STEPS, STEPS times."""

        def __init__(self) -> None:
            super().__init__()
            self.f = nn.Sequential(nn.Linear(WIDTH, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, WIDTH))

        def forward(self, x: Any) -> Any:
            for _ in range(STEPS):
                x = x + self.f(x) / STEPS
            return x

    return nn.Sequential(Flow(), nn.Linear(WIDTH, 4))


TASK = Task(network, (WIDTH,), classes=4)
model, batch = TASK.model(8), TASK.batches(8)
