"""3 inputs -> 4 -> 4 -> 1 tanh units, four samples at once, the sum of squared errors, plain SGD."""

import numpy as np

import autodiff_gen as ag
from autodiff_gen import nn, optim

net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1), nn.Tanh())

model = ag.Model.supervised(net, input=(4, 3), loss=nn.MSELoss(reduction="sum"), optimizer=optim.SGD(lr=0.05))

# The inputs of `autodiff-gen check`, instead of random numbers; main.c has the same four samples.
samples = {
    "x": np.array([[2, 3, -1], [3, -1, 0.5], [0.5, 1, 1], [1, 1, -1]], dtype=np.float32),
    "target": np.array([[1], [-1], [-1], [1]], dtype=np.float32),
}
