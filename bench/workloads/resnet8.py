"""ResNet-8, the image classifier of MLPerf Tiny (Banbury et al. 2021): 3 x 32 x 32, 10 classes."""

from __future__ import annotations

from typing import Any

from common import Task, conv_norm


def network(nn: Any) -> Any:
    class Block(nn.Module):
        """Two 3x3 convolutions, plus the input, or its 1x1 convolution where the shape changes."""

        def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
            super().__init__()
            first = conv_norm(nn, inputs, outputs, 3, stride)
            self.main = nn.Sequential(*first, nn.ReLU(), *conv_norm(nn, outputs, outputs, 3))
            same = stride == 1 and inputs == outputs
            self.shortcut = nn.Identity() if same else nn.Conv2d(inputs, outputs, 1, stride)
            self.relu = nn.ReLU()

        def forward(self, x: Any) -> Any:
            return self.relu(self.main(x) + self.shortcut(x))

    return nn.Sequential(
        *conv_norm(nn, 3, 16, 3),
        nn.ReLU(),
        *(Block(16, 16), Block(16, 32, 2), Block(32, 64, 2)),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)),
    )


TASK = Task(network, (3, 32, 32), classes=10)
model, batch = TASK.model(1), TASK.batches(1)
