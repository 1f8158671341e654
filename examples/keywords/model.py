"""A keyword spotter, pretrained on many speakers, adapts to a new one: the last block and the classifier are trained,
one word at a time by SGD with momentum; all other layers are frozen."""

from pathlib import Path

import numpy as np
from net import KeywordNet

import autodiff_gen as ag
from autodiff_gen import nn, optim

net = KeywordNet()
net.load_state_dict(np.load(Path(__file__).with_name("weights.npz")))
for frozen in (net.conv, net.block1, net.block2, net.block3):
    frozen.requires_grad_(False)

model = ag.Model.supervised(
    net, input=(1, 1, 49, 10), loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=1e-3, momentum=0.9)
)
