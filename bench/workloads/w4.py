"""W4: XOR, 2-8-2 with biases, relu and cross-entropy; batch 4, SGD 0.5."""

from __future__ import annotations

import numpy as np
from common import cycled, linear, weight

import autodiff_gen as ag
from autodiff_gen import nn, optim

X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=np.float32)
Y = np.array([0, 1, 1, 0], dtype=np.uint8)

net = nn.Sequential(
    linear(weight((8, 2), 0.70710678, 4001), bias=True),
    nn.ReLU(),
    linear(weight((2, 8), 0.35355339, 4003), bias=True),
)
model = ag.Model.supervised(net, input=(4, 2), loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=0.5))


def batch(step: int) -> list[np.ndarray]:
    """Inputs and labels of a step, counted from 0."""
    return cycled(step, 4, X, Y)
