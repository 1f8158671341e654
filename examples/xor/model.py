"""Exclusive or: 2 inputs -> 8 ReLU units -> 2 classes, all four samples in one batch, plain SGD."""

import numpy as np

import autodiff_gen as ag
from autodiff_gen import init, nn, optim

net = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))
# Default uniform weights, with a seed that leaves no unit dead; biases 0.
net[0].weight = nn.Parameter(init.uniform((8, 2), 2**-0.5, seed=5))
net[0].bias = nn.Parameter(init.zeros(8))
net[2].bias = nn.Parameter(init.zeros(2))

model = ag.Model.supervised(net, input=(4, 2), loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=0.5))

# The inputs of `autodiff-gen check`, instead of random numbers; main.c has the same four samples.
samples = {
    "x": np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=np.float32),
    "label": np.array([0, 1, 1, 0], dtype=np.uint8),
}
