"""The anomaly detector of MLPerf Tiny: 640 mel bands -> 128 -> 128 -> 128 -> 8 -> 128 -> 128 -> 128 -> 640, trained to
reconstruct its input; a sound with a large reconstruction error is an anomaly. Adam, batches of up to 32 sounds."""

import itertools

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim

WIDTHS = (640, 128, 128, 128, 8, 128, 128, 128)

layers = []
for inputs, outputs in itertools.pairwise(WIDTHS):
    layers += [nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), nn.ReLU()]
net = nn.Sequential(*layers, nn.Linear(128, 640))

x = ag.Input("x", (32, 640), batch_axis=0)
error = F.mean(F.square(net(x) - x), 1)

model = ag.Model([x], [], {"error": error}, F.mean(error), optim.Adam(lr=1e-3))
