"""The keyword spotter of ../keywords with normalisation layers: features of 49 frames of 10 bands, and a classifier."""

import numpy as np

from autodiff_gen import functional as F
from autodiff_gen import nn

CHANNELS = 32


def block():
    """A depthwise 3x3 convolution, then a pointwise one."""
    return nn.Sequential(
        nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, groups=CHANNELS, bias=False),
        nn.BatchNorm2d(CHANNELS),
        nn.ReLU(),
        nn.Conv2d(CHANNELS, CHANNELS, 1, bias=False),
        nn.BatchNorm2d(CHANNELS),
        nn.ReLU(),
    )


class Backbone(nn.Module):
    """x[n, 1, 49, 10] -> [n, CHANNELS]."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, CHANNELS, (10, 4), stride=2, padding=(5, 1), bias=False)
        self.norm = nn.BatchNorm2d(CHANNELS)
        self.blocks = nn.Sequential(*(block() for _ in range(4)))

    def forward(self, x):
        return F.mean(self.blocks(F.relu(self.norm(self.conv(x)))), (2, 3))


def network_input(words):
    """uint8[n, 490] as float32[n, 1, 49, 10]."""
    return ((words.astype(np.float32) - 128.0) / 64.0).reshape(-1, 1, 49, 10)
