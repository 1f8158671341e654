"""Federated training of a small network on boards with few classes each: what tests compare between servers. Imports
neither torch nor flwr."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.codegen.board_link_layout import link_layout
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.device.rounds import shared_slots
from autodiff_gen.fleet.records import records
from autodiff_gen.fleet.round_request import RoundSettings
from autodiff_gen.fleet.twins import Twins

WIDTH, HIDDEN, CLASSES, BATCH, LR, STEPS, ROUNDS, MU = 6, 5, 3, 4, 0.2, 4, 10, 0.5
PARTS = (np.arange(3), np.arange(3, 14), np.arange(14, 24))  # samples of each board


def data(samples: int = 24, seed: int = 0) -> dict[str, Any]:
    """Samples whose classes are sorted, so that a board has one class or two."""
    rng = np.random.default_rng(seed)
    return {
        "x": rng.normal(size=(samples, WIDTH)).astype(np.float32),
        "target": np.sort(rng.integers(0, CLASSES, samples)),
    }


class Integers(nn.Module):
    """A layer of floats that trains in part, and one of 8-bit integers."""

    def __init__(self) -> None:
        super().__init__()
        rng = np.random.default_rng(1)
        self.first = nn.Linear(WIDTH, HIDDEN)
        nn.update_channels(self.first, 0.5)
        self.last = nn.QuantizedParameter(rng.integers(-127, 128, (CLASSES, HIDDEN)).astype(np.int8), 0.02)

    def forward(self, x: ag.Value) -> ag.Value:
        return F.linear(F.tanh(self.first(x)), F.dequantize(self.last))


class Problem:
    """The twins, and the weights with which they begin, as floats."""

    def __init__(self, integers: bool = False) -> None:
        layers = nn.Linear(WIDTH, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, CLASSES)
        net = Integers() if integers else nn.Sequential(*layers)
        model = ag.Model.supervised(net, (BATCH, WIDTH), nn.CrossEntropyLoss(), optim.SGD(lr=LR))
        self.program, self.arrays = compile_model(model, "net", ["ref"]), data()
        layout = link_layout(self.program)
        named = {a.name: self.arrays["target" if a.is_target else "x"] for a in layout.inputs}
        self.twins = Twins(self.program, [records(layout, named, rows) for rows in PARTS], opt="-O0")
        self.members = [self.twins]
        self.slots = shared_slots(self.program)
        self.weights = {s.name: np.full(s.state.logical.shape, 0.1, np.float32) for s in self.slots}
        first = self.weights[self.slots[0].name]
        first += (np.arange(len(first), dtype=np.float32) / 10)[:, None]

    def settings(self, mu: float = 0.0) -> RoundSettings:
        return RoundSettings(lr=LR, steps=STEPS, mu=mu)

    def rows(self, number: int, board: int) -> Sequence[Any]:
        """The samples of each local step of a round."""
        size, seed = len(PARTS[board]), self.settings().sample_seed(number, board)
        n = min(BATCH, size)
        at = [self.twins.sample(i % size, size, seed, i // size) for i in range(STEPS * n)]
        return [PARTS[board][at[i * n : (i + 1) * n]] for i in range(STEPS)]
