"""W5: 3-4-4-1 with biases, tanh, tanh, linear, sum of squared errors; batch 4, SGD 0.01."""

from __future__ import annotations

import numpy as np
from common import cycled, linear, weight

import autodiff_gen as ag
from autodiff_gen import nn, optim

X = np.array([[2, 3, -1], [3, -1, 0.5], [0.5, 1, 1], [1, 1, -1]], dtype=np.float32)
Y = np.array([[1], [-1], [-1], [1]], dtype=np.float32)

net = nn.Sequential(
    linear(weight((4, 3), 0.57735027, 5001), bias=True),
    nn.Tanh(),
    linear(weight((4, 4), 0.5, 5003), bias=True),
    nn.Tanh(),
    linear(weight((1, 4), 0.5, 5005), bias=True),
)
model = ag.Model.supervised(net, input=(4, 3), loss=nn.MSELoss(reduction="sum"), optimizer=optim.SGD(lr=0.01))


def batch(step: int) -> list[np.ndarray]:
    """Inputs and targets of a step, counted from 0."""
    return cycled(step, 4, X, Y)
