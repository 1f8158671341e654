"""W6: inverted residual blocks (MobileNetV2) on 3 x 32 x 32 images, no batch norm, cross-entropy; batch 1, SGD 0.01."""

from __future__ import annotations

import math
from itertools import count
from typing import Any

import numpy as np
from common import convolution, cycled, data, labels, linear, weight

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.ir.node import Value

X, Y = data((16, 3, 32, 32), 61), labels(16, 10, 62)
layers = count()


def drawn(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Conv2d:
    """The next convolution: bound sqrt(3 / fan_in), seed 6001 + 2 n, padding kernel / 2."""
    shape = (outputs, inputs // groups, kernel, kernel)
    values = weight(shape, math.sqrt(3 / math.prod(shape[1:])), 6001 + 2 * next(layers))
    return convolution(values, stride=stride, padding=kernel // 2, groups=groups)


class Block(nn.Module):
    """Pointwise, relu6, depthwise 3x3, relu6, pointwise; plus the input where the shape stays."""

    def __init__(self, inputs: int, hidden: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.expand = drawn(inputs, hidden, 1)
        self.depthwise = drawn(hidden, hidden, 3, stride, groups=hidden)
        self.project = drawn(hidden, outputs, 1)
        self.act = nn.ReLU6()
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: Any) -> Value:
        y: Value = self.project(self.act(self.depthwise(self.act(self.expand(x)))))
        return y + x if self.residual else y


net = nn.Sequential(
    drawn(3, 16, 3, stride=2),
    nn.ReLU6(),
    Block(16, 48, 16),
    Block(16, 48, 24, stride=2),
    Block(24, 72, 24),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    linear(weight((10, 24), 0.20412415, 6101), bias=True),
)
model = ag.Model.supervised(
    net, input=(1, 3, 32, 32), loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=0.01)
)


def batch(step: int) -> list[np.ndarray]:
    """Inputs and labels of a step, counted from 0."""
    return cycled(step, 1, X, Y)
