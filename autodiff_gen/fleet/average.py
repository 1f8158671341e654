"""Federated averaging (McMahan et al., 2017): the mean of the boards' differences, weighted by their samples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .board_group import BoardResult
from .counts import Counts


class WeightedMean:
    """Reports are added as they come; their order does not matter beyond rounding to float64."""

    def __init__(self) -> None:
        self.boards = self.samples = self.examples = 0
        self._sum: Any = None
        self._losses = 0.0
        self.labels = self.right = 0
        self.counts = Counts()

    def add(self, report: BoardResult) -> None:
        self.boards += 1
        self.samples += report.samples
        self.examples += report.local.examples
        if self.boards == 1:
            self._sum = np.zeros(report.delta.shape)
        self._sum += np.multiply(report.delta, report.samples, dtype=np.float64)
        self._losses += report.samples * report.local.loss
        if report.evaluation is not None:
            self.labels += report.evaluation.labels
            self.right += report.evaluation.right
        self.counts.add(report.kind, report.local)

    @property
    def delta(self) -> Any:
        """The mean difference, flat."""
        return (self._sum / self.samples).astype(np.float32)

    @property
    def loss(self) -> float:
        """The mean loss of local steps."""
        return self._losses / self.samples

    @property
    def accuracy(self) -> float:
        """The share of labels that the weights before the round recognise on the boards; NaN without any."""
        return self.right / self.labels if self.labels else math.nan
