"""Convolutions with few and many channels, to compare the kernels of a board that serve the same convolutions.

    ./scons board=virt_a53 model=bench/qemu/convolutions.py bench

counts the instructions of each forward pass and gradient: docs/boards.md, "Choice by cost".
"""

from __future__ import annotations

from collections.abc import Iterator

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.ir.node import Value

SIZE = 18
INPUTS = (1, 2, 3, 4, 6, 8, 9, 12, 14, 16, 18, 20, 24, 28, 32)
OUTPUTS = (4, 6, 10, 12, 14, 16, 18, 20, 24, 28, 32)


def cases() -> Iterator[tuple[int, int, int, int]]:
    """(input channels, output channels, width of the window, padding)"""
    pairs = [(c, 8) for c in INPUTS] + [(8, o) for o in OUTPUTS] + [(12, 12), (16, 16), (24, 24), (32, 32)]
    for inputs, outputs in pairs:
        for width, padding in ((1, 0), (3, 0), (3, 1), (5, 0)):
            yield inputs, outputs, width, padding


class Convolutions(nn.Module):
    """The mean square of each convolution of the same image, added up."""

    def __init__(self) -> None:
        super().__init__()
        self.inputs = nn.ModuleList([nn.Conv2d(1, c, 1) for c in INPUTS])
        self.cases = nn.ModuleList([nn.Conv2d(c, o, k, padding=p, bias=False) for c, o, k, p in cases()])

    def forward(self, x: Value) -> Value:
        images = {c: layer(x) for c, layer in zip(INPUTS, self.inputs, strict=True)}
        total: Value | float = 0.0
        for (inputs, *_), layer in zip(cases(), self.cases, strict=True):
            y = layer(images[inputs])
            total = total + F.mean(y * y)
        return F.reshape(total, (1, 1))


model = ag.Model.supervised(
    Convolutions(), input=(1, 1, SIZE, SIZE), loss=nn.MSELoss(), optimizer=optim.SGD(lr=1e-3)
)
