"""The progress of a round, on a terminal."""

from __future__ import annotations

import math
import time

from ..device.log import clock
from ..progress import step
from .board_group import BoardResult, Failure


class RoundProgress:
    """Shows after each answer how many of `boards` answered, their loss, and the time left in this round and in `more`
    rounds."""

    def __init__(self, boards: int, more: int) -> None:
        self._boards, self._more, self._begin = boards, more, time.monotonic()
        self._answers = self._failures = 0
        self._losses = self._samples = 0.0
        step(self.line(0.0))

    def __call__(self, answer: BoardResult | Failure) -> None:
        self._answers += 1
        if isinstance(answer, Failure):
            self._failures += 1
        elif math.isfinite(answer.local.loss):
            self._losses += answer.samples * answer.local.loss
            self._samples += answer.samples
        step(self.line(time.monotonic() - self._begin))

    def line(self, seconds: float) -> str:
        """`512 of 1,000 boards answered, 3 failed, loss 0.4321, 0:21 left`."""
        parts = [f"{self._answers:,} of {self._boards:,} boards answered"]
        if self._failures:
            parts.append(f"{self._failures:,} failed")
        if self._samples:
            parts.append(f"loss {self._losses / self._samples:.4f}")
        if self._answers:
            due = self._boards - self._answers + self._more * self._boards
            parts.append(f"{clock(due * seconds / self._answers)} left")
        return ", ".join(parts)
