"""Padding as in TensorFlow, more after the image than before it: 3 x 32 x 32, separable convolutions of stride 2."""

from __future__ import annotations

from typing import Any

from common import Task, conv_norm


def network(nn: Any) -> Any:
    def halved(inputs: int, outputs: int, groups: int) -> list[Any]:
        convolution = nn.Conv2d(inputs, outputs, 3, stride=2, groups=groups, bias=False)
        return [nn.ZeroPad2d((0, 1, 0, 1)), convolution, nn.BatchNorm2d(outputs), nn.ReLU6()]

    return nn.Sequential(
        *halved(3, 8, 1),
        *(*halved(8, 8, 8), *conv_norm(nn, 8, 16, 1), nn.ReLU6()),
        *(*halved(16, 16, 16), *conv_norm(nn, 16, 32, 1), nn.ReLU6()),
        *(nn.ZeroPad2d((1, 1, 1, 1)), nn.Conv2d(32, 32, 3), nn.ReLU()),
        *(nn.ZeroPad2d((0, 1, 0, 1)), nn.MaxPool2d(3, stride=2)),
        *(nn.Flatten(), nn.Linear(128, 10)),
    )


TASK = Task(network, (3, 32, 32), classes=10)
model, batch = TASK.model(1), TASK.batches(1)
