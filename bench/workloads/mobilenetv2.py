"""MobileNetV2 0.35 (Sandler et al. 2018): 3 x 96 x 96, 2 classes (visual wake words)."""

from __future__ import annotations

from typing import Any

from common import Task, conv_norm

# expansion, channels (channels of width 1 times 0.35, in multiples of 8), blocks, stride of the first
STAGES = (
    *((1, 8, 1, 1), (6, 8, 2, 2), (6, 16, 3, 2), (6, 24, 4, 2)),
    *((6, 32, 3, 1), (6, 56, 3, 2), (6, 112, 1, 1)),
)


def network(nn: Any) -> Any:
    class Block(nn.Module):
        """Pointwise, relu6, depthwise 3x3, relu6, pointwise; plus the input where the shape is unchanged."""

        def __init__(self, inputs: int, outputs: int, expansion: int, stride: int) -> None:
            super().__init__()
            hidden = inputs * expansion
            expand = [*conv_norm(nn, inputs, hidden, 1), nn.ReLU6()] if expansion > 1 else []
            depthwise = [*conv_norm(nn, hidden, hidden, 3, stride, groups=hidden), nn.ReLU6()]
            self.main = nn.Sequential(*expand, *depthwise, *conv_norm(nn, hidden, outputs, 1))
            self.residual = stride == 1 and inputs == outputs

        def forward(self, x: Any) -> Any:
            return x + self.main(x) if self.residual else self.main(x)

    blocks, inputs = [], 16
    for expansion, outputs, count, stride in STAGES:
        for k in range(count):
            blocks.append(Block(inputs, outputs, expansion, 1 if k else stride))
            inputs = outputs
    return nn.Sequential(
        *(*conv_norm(nn, 3, 16, 3, stride=2), nn.ReLU6()),
        *blocks,
        *(*conv_norm(nn, inputs, 1280, 1), nn.ReLU6()),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 2)),
    )


TASK = Task(network, (3, 96, 96), classes=2)
model, batch = TASK.model(1), TASK.batches(1)
