"""SpeechNet of SilentWear: silent speech from 14 electrodes at 700 moments, 9 words. It has 15,489 parameters, as the
published breakdown says; BatchNorm keeps its statistics.
"""

from __future__ import annotations

from typing import Any

from common import Task


def layer(nn: Any, inputs: int, outputs: int, kernel: tuple[int, int], pad: int, pool: int = 1) -> list[Any]:
    norm = nn.BatchNorm2d(outputs)
    norm.eval()
    made = [nn.Conv2d(inputs, outputs, kernel, padding=(0, pad)), norm, nn.ReLU()]
    return made if pool == 1 else [*made, nn.MaxPool2d((1, pool))]


def network(nn: Any) -> Any:
    return nn.Sequential(
        *layer(nn, 1, 8, (1, 4), 2, 8),
        *layer(nn, 8, 16, (1, 16), 8, 4),
        *layer(nn, 16, 16, (1, 8), 4, 4),
        *layer(nn, 16, 32, (7, 1), 0),
        *layer(nn, 32, 32, (7, 1), 0),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 9)),
    )


TASK = Task(network, (1, 14, 700), classes=9)
model, batch = TASK.model(1), TASK.batches(1)
