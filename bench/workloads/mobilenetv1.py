"""MobileNetV1 0.25 (Howard et al. 2017), the person detector of MLPerf Tiny: 3 x 96 x 96, 2 classes."""

from __future__ import annotations

from typing import Any

from common import Task, conv_norm, separable

CHANNELS = (8, 16, 32, 32, 64, 64, 128, 128, 128, 128, 128, 128, 256, 256)
STRIDES = (1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1)


def network(nn: Any) -> Any:
    blocks = zip(CHANNELS, CHANNELS[1:], STRIDES, strict=False)
    return nn.Sequential(
        *(*conv_norm(nn, 3, CHANNELS[0], 3, stride=2), nn.ReLU()),
        *(layer for block in blocks for layer in separable(nn, *block)),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(CHANNELS[-1], 2)),
    )


TASK = Task(network, (3, 96, 96), classes=2)
model, batch = TASK.model(1), TASK.batches(1)
