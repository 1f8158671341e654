"""Handwritten digits by two convolutions, two poolings and three linear layers: a LeNet, in batches of 8."""

import autodiff_gen as ag
from autodiff_gen import nn, optim

net = nn.Sequential(
    nn.Conv2d(1, 6, 5),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(6, 16, 5),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(256, 120),
    nn.ReLU(),
    nn.Linear(120, 84),
    nn.ReLU(),
    nn.Linear(84, 10),
)

model = ag.Model.supervised(
    net, input=(8, 1, 28, 28), loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=0.05)
)
