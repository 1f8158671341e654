"""The LeNet of W3: conv 6@5x5, relu, maxpool 2, conv 16@5x5, relu, maxpool 2, flatten, 120, relu, 84, relu, 10."""

from __future__ import annotations

from common import convolution, data, labels, linear, weight

from autodiff_gen import nn

X, Y = data((64, 1, 28, 28), 31), labels(64, 10, 32)


def lenet() -> nn.Sequential:
    return nn.Sequential(
        convolution(weight((6, 1, 5, 5), 0.2, 3001)),
        nn.ReLU(),
        nn.MaxPool2d(2),
        convolution(weight((16, 6, 5, 5), 0.08164966, 3003)),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        linear(weight((120, 256), 1 / 16, 3005), bias=True),
        nn.ReLU(),
        linear(weight((84, 120), 0.09128709, 3007), bias=True),
        nn.ReLU(),
        linear(weight((10, 84), 0.10910895, 3009), bias=True),
    )
