"""Who takes part in a round: boards over the link, and twins on the host."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from ..device.board import Board
from ..device.rounds import F32, Round, Work, stored
from ..errors import AutodiffError
from .twins import Failure, Report, Twins


@dataclass(frozen=True)
class Order:
    """What a server asks of a round: `number`, the weights by name, the work of each board, how differences are sent.
    `local_buffers`: running statistics stay on the boards."""

    number: int
    weights: Mapping[str, Any]
    work: Callable[[int], Work]
    encoding: str = F32
    local_buffers: bool = False

    def seed(self, board: int) -> int:
        """Of the rounding of a difference: another for each board and round."""
        return (self.number * 0x9E3779B1 + board * 0x85EBCA77) & 0xFFFFFFFF


class Members(Protocol):
    """Boards with consecutive numbers from `first` on."""

    first: int

    def __len__(self) -> int: ...

    def round(self, order: Order, boards: Sequence[int]) -> Iterator[Report | Failure]:
        """The round on some of them, whose answers come in their order."""
        ...


class HostTwins:
    """Twins in this process."""

    def __init__(self, twins: Twins, first: int = 0) -> None:
        self.first, self._twins = first, twins

    def __len__(self) -> int:
        return len(self._twins)

    def round(self, order: Order, boards: Sequence[int]) -> Iterator[Report | Failure]:
        weights = stored(self._twins.slots(order.local_buffers), order.weights)
        for answer in self._twins.train(
            order.number,
            weights,
            lambda k: order.work(self.first + k),
            [k - self.first for k in boards],
            local_buffers=order.local_buffers,
            encoding=order.encoding,
            seed=lambda k: order.seed(self.first + k),
        ):
            yield replace(answer, board=self.first + answer.board)


class LinkedBoards:
    """Boards over the link, each by its own connection; all of them train at the same time."""

    def __init__(self, boards: Sequence[Board], first: int = 0) -> None:
        self.first, self._boards = first, boards

    def __len__(self) -> int:
        return len(self._boards)

    def round(self, order: Order, boards: Sequence[int]) -> Iterator[Report | Failure]:
        with ThreadPoolExecutor(max(len(boards), 1)) as pool:
            yield from pool.map(partial(self._one, order), boards)

    def _one(self, order: Order, k: int) -> Report | Failure:
        try:
            own = Round(self._boards[k - self.first], order.number, order.weights, order.local_buffers)
            local = own.train(order.work(k))
            delta = own.difference(order.encoding, order.seed(k))
        except AutodiffError as error:  # no answer, or a rejected step
            return Failure(k, str(error))
        return Report(k, own.samples, local, delta)
