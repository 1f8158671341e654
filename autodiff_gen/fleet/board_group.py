"""Who takes part in a round, and how each board answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..device.rounds import Evaluation, LocalTraining
from .round_request import RoundRequest

Vector = NDArray[np.float32]


@dataclass(frozen=True)
class BoardResult:
    """The result of one board in a round: `delta` is the new weights less the weights of the start, flat. `evaluation`:
    of the weights of the start, if the server asks for it. `kind`: the kind of board, if it has one."""

    board: int
    samples: int
    local: LocalTraining
    delta: Vector
    evaluation: Evaluation | None = None
    kind: str = ""


@dataclass(frozen=True)
class Failure:
    """A board that did not finish a round, and why."""

    board: int
    reason: str

    def __str__(self) -> str:
        return f"board {self.board}: {self.reason}"


class Members(Protocol):
    """Boards with consecutive numbers from `first` on."""

    first: int

    def __len__(self) -> int: ...

    def round(self, order: RoundRequest, boards: Sequence[int]) -> Iterator[BoardResult | Failure]:
        """The round on some of them, in ascending order; the answers come in any order."""
        ...
