"""Synchronous data-parallel training: each rank adds up the gradients of its share of a batch, and all ranks make the
optimizer's step with the sum over all ranks. The result is the same as with one large batch on one machine."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import numpy as np

from ..codegen.board_link_layout import link_layout
from ..codegen.exchanged_part import is_sum
from ..codegen.program import Program, Slot
from ..device.errors import LINK, DeviceError, LinkError
from ..device.gradients import Array, Part, after_apply, exchanged_slots
from ..device.inputs import position
from ..errors import AutodiffError
from .ranks import Rank

T = TypeVar("T")


class RankLost(AutodiffError):
    """A rank did not finish a step. `is_rejected`: the model rejected the step, and would reject it again."""

    def __init__(self, message: str, is_rejected: bool = False) -> None:
        super().__init__(message)
        self.is_rejected = is_rejected


def divided(rows: Any, sizes: range, ranks: int) -> list[list[Any]]:
    """The samples of a step, divided among ranks as evenly as the model allows: for each rank a list of batches. At the
    end of the data set a rank may have no batch. `sizes`: how many samples a call of `accumulate` takes."""
    least, most = sizes[0], sizes[-1]
    unit = most if least == most else 1
    units = len(rows) // unit
    busy = max(min(ranks, len(rows) // least), 1)
    found = []
    for own in np.array_split(np.arange(units), busy):
        part = rows[own[0] * unit : (own[-1] + 1) * unit] if len(own) else rows[:0]
        found.append(np.array_split(part, -(-len(part) // most)) if len(part) else [])
    return found + [[]] * (ranks - busy)


class Synchronous:
    """Training by several ranks with the same weights. `reduction`: whether the loss is a mean or a sum over
    samples."""

    def __init__(self, program: Program, ranks: Sequence[Rank], reduction: str) -> None:
        self.program, self.ranks, self.reduction = program, ranks, reduction
        self.steps = 0
        self._checksums: list[int] = []  # of states that ranks do not exchange, after the last step
        self._slots = exchanged_slots(program)
        self._part: Part = {}  # the exchanged part of every rank between two steps
        names = [a.name for a in link_layout(program).inputs]
        self._names = sorted(names, key=lambda name: position(program, name))
        self._pool = ThreadPoolExecutor(len(ranks))

    def load(self, state: Mapping[str, Array], steps: int) -> None:
        """Give all ranks this state, without sums of gradients."""
        known = dict(state)
        for slot in self._slots:
            known[slot.name] = np.zeros_like(known[slot.name]) if is_sum(slot) else known[slot.name]
        self._part = {slot.name: known[slot.name] for slot in self._slots}
        self._on(self.ranks, [partial(rank.load, known, steps) for rank in self.ranks])
        self.steps = steps

    def step(self, data: Mapping[str, Array], shares: Sequence[Sequence[Any]], lr: float | None) -> float:
        """One step on rows of `data`. shares: batches of rows for each rank. Returns the loss before the step. Raises
        RankLost."""
        draws, busy, work = 0, [], []
        for rank, batches in zip(self.ranks, shares, strict=True):
            if batches:
                arrays = [[data[name][rows] for name in self._names] for rows in batches]
                busy.append(rank)
                work.append(partial(rank.accumulate, self._start(draws), arrays))
                draws += len(batches)
        answers = self._on(busy, work)
        sizes = [[len(rows) for rows in batches] for batches in shares if batches]
        whole = combined(self._slots, [part for _, part in answers], [sum(own) for own in sizes])
        self._checksums = self._on(self.ranks, [partial(rank.apply, whole, lr) for rank in self.ranks])
        self._check_kinds()
        self._part = after_apply(self.program, whole)
        self.steps += 1
        losses = [
            (loss, n)
            for (own, _), ns in zip(answers, sizes, strict=True)
            for loss, n in zip(own, ns, strict=True)
        ]
        if self.reduction == "sum":
            return math.fsum(loss for loss, _ in losses)
        return math.fsum(loss * n for loss, n in losses) / sum(n for _, n in losses)

    def equalize(self) -> None:
        """Give the state of the first rank to ranks of other kinds, whose kernels round in another way."""
        pairs = zip(self.ranks, self._checksums, strict=True)
        if others := [rank for rank, crc in pairs if crc != self._checksums[0]]:
            state = self.state()
            self._on(others, [partial(rank.load, state, self.steps) for rank in others])

    def state(self) -> dict[str, Array]:
        """The state after the last step, from the first rank that answers. Raises RankLost."""
        reasons = []
        for rank in self.ranks:
            try:
                found = rank.state()
            except AutodiffError as error:
                reasons.append(f"{rank.name}: {error}")
                continue
            if rank.steps == self.steps:  # otherwise the rank made one step more, with its own statistics
                found.update(self._part)
            self.steps = rank.steps
            return found
        raise RankLost(reasons[0])

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()

    def _start(self, draws: int) -> Part:
        """The exchanged part with which a rank begins a step. Its counters include the batches of the ranks before it,
        so that each batch draws other random numbers."""
        counters = {s.name: self._part[s.name] for s in self._slots if s.role == "counter"}
        return {
            **self._part,
            **{name: before + before.dtype.type(draws) for name, before in counters.items()},
        }

    def _check_kinds(self) -> None:
        """Raises RankLost where two ranks of one kind have different weights after a step."""
        first: dict[str, tuple[Rank, int]] = {}
        for rank, crc in zip(self.ranks, self._checksums, strict=True):
            other, expected = first.setdefault(rank.kind, (rank, crc))
            if crc != expected:
                raise RankLost(
                    f"{rank.name} has other weights than {other.name} after step {self.steps + 1:,}: does another "
                    "program use it?"
                )

    def _on(self, ranks: Sequence[Rank], operations: Sequence[Callable[[], T]]) -> list[T]:
        """Run the operations at the same time, all to their end. Raises RankLost if one failed."""
        pending = [self._pool.submit(operation) for operation in operations]
        for rank, one in zip(ranks, pending, strict=True):
            if isinstance(error := one.exception(), AutodiffError):
                lost = isinstance(error, LinkError) or (
                    isinstance(error, DeviceError) and error.status <= LINK
                )
                raise RankLost(f"{rank.name}: {error}", not lost) from None
        return [one.result() for one in pending]


def combined(slots: Iterable[Slot], parts: Sequence[Part], samples: Sequence[int]) -> Part:
    """The exchanged part of all ranks, which are in order: the sum of sums, the mean of buffers of floats, weighted by
    samples, other buffers of the first rank, and the counters of the last rank."""
    found = {}
    for slot in slots:
        arrays = [part[slot.name] for part in parts]
        dtype = arrays[0].dtype
        if is_sum(slot):
            found[slot.name] = _added(arrays).astype(dtype)
        elif slot.role == "counter":
            found[slot.name] = arrays[-1]
        elif dtype.kind == "f":
            weighted = _added([n * a.astype(np.float64) for a, n in zip(arrays, samples, strict=True)])
            found[slot.name] = (weighted / sum(samples)).astype(dtype)
        else:
            found[slot.name] = arrays[0]
    return found


def _added(arrays: Sequence[Array]) -> Array:
    """The sum of the arrays in float64, from the first to the last."""
    total = arrays[0].astype(np.float64)
    for array in arrays[1:]:
        total = total + array
    return total
