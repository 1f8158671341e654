"""W2: 784-32-10 without biases, relu and cross-entropy, the weights and data of W1; batch 32, SGD 0.01."""

from __future__ import annotations

import numpy as np
from common import cycled, data, labels, linear, weight

import autodiff_gen as ag
from autodiff_gen import nn, optim

X, Y = data((256, 784), 11), labels(256, 10, 12)

net = nn.Sequential(
    linear(weight((32, 784), 1 / 28, 1001)),
    nn.ReLU(),
    linear(weight((10, 32), 0.17677669, 1002)),
)
model = ag.Model.supervised(net, input=(32, 784), loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=0.01))


def batch(step: int) -> list[np.ndarray]:
    """Inputs and labels of a step, counted from 0."""
    return cycled(step, 32, X, Y)
