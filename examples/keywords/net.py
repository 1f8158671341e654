"""A depthwise-separable convolutional network (DS-CNN) that classifies ten words from 49 frames of 10 bands:
the keyword spotter of MLPerf Tiny with half its channels, and without normalisation layers."""

from autodiff_gen import functional as F
from autodiff_gen import nn

CHANNELS, WORDS = 32, 10


class Block(nn.Module):
    """A depthwise 3x3 convolution, then a pointwise one."""

    def __init__(self):
        super().__init__()
        self.depthwise = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, groups=CHANNELS)
        self.pointwise = nn.Conv2d(CHANNELS, CHANNELS, 1)

    def forward(self, x):
        return F.relu(self.pointwise(F.relu(self.depthwise(x))))


class KeywordNet(nn.Module):
    """x[n, 1, 49, 10] -> scores[n, WORDS]."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, CHANNELS, (10, 4), stride=2, padding=(5, 1))
        self.block1, self.block2, self.block3, self.block4 = Block(), Block(), Block(), Block()
        self.classifier = nn.Linear(CHANNELS, WORDS)

    def forward(self, x):
        x = F.relu(self.conv(x))
        for block in (self.block1, self.block2, self.block3, self.block4):
            x = block(x)
        return self.classifier(F.mean(x, (2, 3)))
