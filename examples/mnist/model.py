"""Handwritten digits: 784 pixels -> 32 sigmoid units -> 10 classes, one image at a time, plain SGD."""

import autodiff_gen as ag
from autodiff_gen import nn, optim

net = nn.Sequential(
    nn.Linear(784, 32, bias=False),
    nn.Sigmoid(),
    nn.Linear(32, 10, bias=False),
    nn.LogSoftmax(dim=1),
)

model = ag.Model.supervised(net, input=(1, 784), loss=nn.NLLLoss(), optimizer=optim.SGD(lr=0.01))
