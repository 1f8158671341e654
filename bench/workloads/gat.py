"""Graph attention (Velickovic et al. 2018): a complete graph of 32 nodes, two layers of four heads of width 8; each
node is classified."""

from __future__ import annotations

from typing import Any

import numpy as np
from common import cycled, data, labels

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim

NODES, HEADS, WIDTH, CLASSES = 32, 4, 8, 5
FEATURES = HEADS * WIDTH
X, Y = data((4, NODES, FEATURES), 71), labels(4 * NODES, CLASSES, 72).reshape(4, NODES)


class Attention(nn.Module):
    """Scores of all pairs of nodes are the sums of a score of each."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(FEATURES, FEATURES, bias=False)
        self.source = nn.Linear(WIDTH, HEADS, bias=False)
        self.target = nn.Linear(WIDTH, HEADS, bias=False)
        self.activation = nn.LeakyReLU(0.2)

    def forward(self, x: Any) -> Any:
        h = self.project(x).reshape(NODES, HEADS, WIDTH).permute(1, 0, 2)
        source, target = (
            (h * layer.weight.reshape(HEADS, 1, WIDTH)).sum(2).reshape(HEADS, NODES, 1)
            for layer in (self.source, self.target)
        )
        scores = self.activation(source + target.permute(0, 2, 1))
        return (scores.softmax(2) @ h).permute(1, 0, 2).reshape(NODES, FEATURES)


net = nn.Sequential(Attention(), Attention(), nn.Linear(FEATURES, CLASSES))
x, label = ag.Input("x", (NODES, FEATURES)), ag.Input("label", (NODES,), "u8")
scores = net(x)
model = ag.Model([x], [label], {"scores": scores}, F.cross_entropy(scores, label), optim.SGD(lr=0.001))


def batch(step: int) -> list[np.ndarray]:
    """Features and labels of the nodes in a step, counted from 0."""
    return [a[0] for a in cycled(step, 1, X, Y)]
