"""MobileNetV2 (Sandler et al. 2018) of width 0.35 without its classifier, for images of 96 x 96 pixels."""

import numpy as np

from autodiff_gen import nn

FEATURES = 1280
# expansion, channels (channels of width 1 times 0.35, in multiples of 8), blocks, stride of the first
STAGES = (
    (1, 8, 1, 1),
    (6, 8, 2, 2),
    (6, 16, 3, 2),
    (6, 24, 4, 2),
    (6, 32, 3, 1),
    (6, 56, 3, 2),
    (6, 112, 1, 1),
)


def convolution(inputs, outputs, kernel, stride=1, groups=1):
    """A convolution without bias, with normalisation."""
    return (
        nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
    )


class Block(nn.Module):
    """A pointwise convolution to more channels, a depthwise one, a pointwise one to few channels; its input is added
    where it has the shape of the result."""

    def __init__(self, inputs, outputs, expansion, stride):
        super().__init__()
        hidden = inputs * expansion
        self.expand = nn.Sequential(*convolution(inputs, hidden, 1), nn.ReLU6())
        self.depthwise = nn.Sequential(*convolution(hidden, hidden, 3, stride, groups=hidden), nn.ReLU6())
        self.project = nn.Sequential(*convolution(hidden, outputs, 1))
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x):
        y = self.project(self.depthwise(self.expand(x)))
        return x + y if self.residual else y


class FirstBlock(nn.Module):
    """A block that has no more channels inside than its input."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.depthwise = nn.Sequential(*convolution(inputs, inputs, 3, groups=inputs), nn.ReLU6())
        self.project = nn.Sequential(*convolution(inputs, outputs, 1))

    def forward(self, x):
        return self.project(self.depthwise(x))


def blocks(inputs):
    for expansion, outputs, count, stride in STAGES:
        for k in range(count):
            if expansion == 1:
                yield FirstBlock(inputs, outputs)
            else:
                yield Block(inputs, outputs, expansion, 1 if k else stride)
            inputs = outputs


class Backbone(nn.Module):
    """x[n, 3, 96, 96] -> [n, FEATURES]."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(*convolution(3, 16, 3, 2), nn.ReLU6())
        self.blocks = nn.Sequential(*blocks(16))
        self.last = nn.Sequential(*convolution(STAGES[-1][1], FEATURES, 1), nn.ReLU6())
        self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())

    def forward(self, x):
        return self.pool(self.last(self.blocks(self.first(x))))


def network_input(crops):
    """uint8[n, 96, 96, 3] as float32[n, 3, 96, 96]."""
    return np.ascontiguousarray(((crops.astype(np.float32) - 128.0) / 64.0).transpose(0, 3, 1, 2))
