"""The requests of a server to boards: the settings of all rounds, and the order of one round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..device.differences import F32, ClipAndNoise
from ..device.rounds import LocalWork


@dataclass(frozen=True)
class RoundSettings:
    """The settings of all rounds of a run. steps: local steps of n samples (0: the model's batch). epochs: without
    steps, passes over a board's own samples. mu: the factor of the proximal term. per_round: the number of boards of a
    round, drawn by `seed` (0: all). encoding: how differences are sent. mask: how differences are clipped and get
    noise. local_buffers: whether running statistics stay on the boards. evaluate: whether boards compare the weights
    with their own labels before they train."""

    lr: float | None = None
    steps: int = 0
    epochs: int = 0
    n: int = 0
    mu: float = 0.0
    seed: int = 0
    per_round: int = 0
    encoding: str = F32
    local_buffers: bool = False
    mask: ClipAndNoise | None = None
    evaluate: bool = False

    def sample_seed(self, number: int, board: int) -> int:
        """The seed of the order of a board's samples in a round."""
        return int(np.random.default_rng((self.seed, number, board)).integers(1 << 32))

    def work(self, number: int, board: int) -> LocalWork:
        """The work of a board in a round."""
        return LocalWork(self.steps, self.lr, self.sample_seed(number, board), self.n, self.mu, self.epochs)

    def chosen(self, number: int, boards: int) -> list[int]:
        """The boards of a round, in ascending order."""
        if not 0 < self.per_round < boards:
            return list(range(boards))
        rng = np.random.default_rng((self.seed, number))
        return sorted(rng.choice(boards, self.per_round, replace=False).tolist())


@dataclass(frozen=True)
class RoundRequest:
    """Round `number`, which begins with these weights by name."""

    number: int
    weights: Mapping[str, Any]
    settings: RoundSettings

    def work(self, board: int) -> LocalWork:
        """The work of a board."""
        return self.settings.work(self.number, board)

    def seed(self, board: int) -> int:
        """The seed that rounds a difference: another for each board and round."""
        return (self.number * 0x9E3779B1 + board * 0x85EBCA77) & 0xFFFFFFFF
