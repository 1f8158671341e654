"""W3: LeNet on 28 x 28 images, cross-entropy; batch 1, SGD 0.01."""

from __future__ import annotations

import numpy as np
from common import cycled
from lenet import X, Y, lenet

import autodiff_gen as ag
from autodiff_gen import nn, optim

net = lenet()
model = ag.Model.supervised(
    net, input=(1, 1, 28, 28), loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=0.01)
)


def batch(step: int) -> list[np.ndarray]:
    """Inputs and labels of a step, counted from 0."""
    return cycled(step, 1, X, Y)
