"""Who takes part in a round, what a server asks of them, and the twins on the host."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ..device.differences import F32, Mask
from ..device.rounds import Work, stored
from .twins import Failure, Report, Twins


@dataclass(frozen=True)
class Order:
    """What a server asks of a round: `number`, the weights by name, the work of each board, how differences are sent.
    `local_buffers`: running statistics stay on the boards. `mask`: how differences are clipped, and get noise.
    `evaluate`: boards compare the weights with labels of their own before they train."""

    number: int
    weights: Mapping[str, Any]
    work: Callable[[int], Work]
    encoding: str = F32
    local_buffers: bool = False
    mask: Mask | None = None
    evaluate: bool = False

    def seed(self, board: int) -> int:
        """Of the rounding of a difference: another for each board and round."""
        return (self.number * 0x9E3779B1 + board * 0x85EBCA77) & 0xFFFFFFFF


class Members(Protocol):
    """Boards with consecutive numbers from `first` on."""

    first: int

    def __len__(self) -> int: ...

    def round(self, order: Order, boards: Sequence[int]) -> Iterator[Report | Failure]:
        """The round on some of them, in ascending order; the answers come in any order."""
        ...


class HostTwins:
    """Twins in this process."""

    def __init__(self, twins: Twins, first: int = 0) -> None:
        self.first, self.twins = first, twins

    def __len__(self) -> int:
        return len(self.twins)

    def round(self, order: Order, boards: Sequence[int]) -> Iterator[Report | Failure]:
        weights = stored(self.twins.slots(order.local_buffers), order.weights)
        for answer in self.twins.train(
            order.number,
            weights,
            lambda k: order.work(self.first + k),
            [k - self.first for k in boards],
            local_buffers=order.local_buffers,
            encoding=order.encoding,
            seed=lambda k: order.seed(self.first + k),
            mask=order.mask,
            evaluate=order.evaluate,
        ):
            yield replace(answer, board=self.first + answer.board)
