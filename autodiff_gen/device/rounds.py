"""A round of federated training on a board (docs/link.md): it gets weights, trains on its own samples, and returns the
difference."""

from __future__ import annotations

import ctypes
import math
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..codegen.program import Program, Slot
from ..codegen.shared_part import shared_part
from ..codegen.state_dict import given
from ..errors import ModelError, ShapeError, listed
from ..ir.types import planned
from . import frames, replies
from .board import Board
from .differences import F32, ClipAndNoise, Encoding
from .encoding import raw_pieces
from .errors import NO_FLASH, ROUND, DeviceError, LinkError
from .link import Request, write_request
from .peer import MOST_ROWS, MOST_STEPS
from .qemu import QemuPort

Array = NDArray[Any]
T = TypeVar("T")
LOCAL_BUFFERS, MASKED = 1, 2
AT_ONCE = 8  # local steps of a request, so that its reply comes in time


@dataclass(frozen=True)
class LocalTraining:
    """The training of a board in a round. `loss`: the mean over its steps, NaN without any. `cycles`: of its core; an
    emulator counts `instructions` instead. Both are 0 where they are not counted."""

    steps: int
    examples: int
    loss: float
    cycles: int = field(default=0, compare=False)
    instructions: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Evaluation:
    """How weights classify samples of a board that it does not train on, or all of its samples if it trains on all."""

    samples: int
    labels: int  # one of each sample, or of its pixels and the like
    right: int


@dataclass(frozen=True)
class LocalWork:
    """How a board trains: `steps` local steps of n samples each, 0 for the model's batch. `seed` determines the order
    of the samples. lr: the learning rate; None for the firmware's, or the rate of the model's schedule. mu: after each
    step w -= lr * mu * (w - w0), with the `lr` given. epochs: instead of steps, passes over the board's own samples."""

    steps: int
    lr: float | None = None
    seed: int = 0
    n: int = 0
    mu: float = 0.0
    epochs: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.steps <= MOST_STEPS or not 0 <= self.n <= MOST_ROWS or not 0 <= self.seed < 1 << 32:
            raise ShapeError(f"steps={self.steps}, n={self.n}, seed={self.seed}: a number is out of range")
        lr, mu = (ctypes.c_float(x).value for x in (self.lr or 0.0, self.mu))
        product = ctypes.c_float(lr * mu).value  # as the board computes it
        if not math.isfinite(lr) or not (math.isfinite(product) and mu >= 0):
            raise ShapeError(
                f"lr={self.lr}, mu={self.mu}: expected finite numbers of float32, mu >= 0, and a product that float32 "
                "holds"
            )
        if mu > 0 and self.lr is None:
            raise ShapeError(f"mu={self.mu} needs a learning rate: give lr")

    def on(self, samples: int, most: int) -> LocalWork:
        """The same work, in steps, on a board. samples: how many it has; most: the most samples of a step."""
        n = self.n or min(most, samples)
        return replace(self, steps=self.steps or self.epochs * -(-samples // max(n, 1)))

    @property
    def rate(self) -> float:
        """The learning rate in a request: NaN for the learning rate of the firmware."""
        return math.nan if self.lr is None else self.lr


def shared_slots(program: Program, local_buffers: bool = False) -> list[Slot]:
    """The states that a round exchanges, in their order."""
    return [s for run in shared_part(program) if not (local_buffers and run.is_buffer) for s in run.slots]


class Round:
    """Round `number` on a board, begun with `weights`: arrays by name. `local_buffers`: the board keeps its own
    buffers. `mask`: how differences are clipped, and get noise. Every operation survives a lost session and a restart
    of the board: the round is then continued, or repeated from its start. Raises DeviceError where the board cannot
    take part."""

    def __init__(
        self,
        board: Board,
        number: int,
        weights: Mapping[str, Any],
        local_buffers: bool = False,
        mask: ClipAndNoise | None = None,
    ) -> None:
        if not 1 <= number < 1 << 32:
            raise ShapeError(f"round {number} is outside 1 to 2^32 - 1")
        self.board, self.number, self._mask = board, number, mask
        self.options = (LOCAL_BUFFERS if local_buffers else 0) | (0 if mask is None else MASKED)
        self.slots = shared_slots(board.program, local_buffers)
        self._data = stored(self.slots, weights)
        self._writes = _writes(board.program, local_buffers, self._data, board.link.payload - 4)
        self._work = LocalWork(0)
        self._session = 0  # in which the board has the round
        self.samples = 0  # of the board
        self.identity = 0  # of the board, 0 without one
        self.local = LocalTraining(0, 0, math.nan)
        board.retry(self._begin)

    @property
    def elements(self) -> int:
        """The number of elements of the shared part."""
        return sum(s.type.bytes // s.type.dtype.size for s in self.slots)

    def train(self, work: LocalWork) -> LocalTraining:
        """Train until the board has made the local steps of `work` in this round. Raises DeviceError for a step that
        the board rejects."""
        self._work = work.on(self.samples, self.board.layout.records)
        self._run(lambda: None)
        return self.local

    def delta(self, encoding: str = F32, seed: int = 0) -> dict[str, Array]:
        """The difference of the weights from the start of the round, by name, as float32 in the model's shapes."""
        return by_name(self.slots, self.difference(encoding, seed))

    def evaluate(self) -> Evaluation:
        """How the weights of the round's start classify samples of the board, which makes its local steps again after
        that. Raises DeviceError for a model without classes."""

        def run() -> Evaluation:
            if self._session != self.board.sessions:
                self._begin()
            if self.local.steps:
                self.board.link.request(
                    frames.BEGIN
                )  # the state counts as written: its start is loaded again
                self._begin()
            done, labels, right, samples = 0, 0, 0, 1
            while done < samples:
                count = min(AT_ONCE * self.board.program.batch, MOST_ROWS, samples - done)
                numbers = struct.pack("<IIH", self.number, done, count)
                found, compared, correct = self.board.link.request(frames.EVALUATE, numbers, "<3I")
                if not correct <= compared:
                    raise LinkError("the board's reply to EVALUATE has more right labels than labels")
                if found == 0 or (done and found != samples):
                    raise LinkError(
                        f"the board's reply to EVALUATE has {found:,} samples, before {samples:,}"
                    )
                samples = found
                done, labels, right = done + count, labels + compared, right + correct
            return Evaluation(samples, labels, right)

        return self.board.retry(run)

    def difference(self, encoding: str = F32, seed: int = 0) -> Array:
        """The difference of the shared part from the start of the round, in the order in which a board stores the
        elements, float32[elements]. With encoding "s8" it takes a quarter of the bytes: multiples of a scale, rounded
        up or down at random by `seed`, right on average. "top0.1" is the largest tenth of each piece, and 0 for the
        others, "top0.1:s8" the same as bytes."""
        if not 0 <= seed < 1 << 32:
            raise ShapeError(f"seed={seed}: expected a seed of 32 bits")
        how = Encoding.of(encoding)
        pieces = how.pieces(self.elements, self.board.link.payload)
        requests = [how.request(self.number, piece, seed) for piece in pieces]
        parts: dict[int, Array] = {}

        def read() -> None:
            while missing := [k for k in range(len(requests)) if k not in parts]:  # their replies were lost
                answers = self.board.link.pipeline([requests[k] for k in missing])
                for k, answer in zip(missing, answers, strict=True):
                    if answer is not None:
                        parts[k] = how.answer(pieces[k], answer)

        self._run(read)
        return np.concatenate([parts[k] for k in range(len(requests))])

    def _run(self, operation: Callable[[], T]) -> T:
        """Run the operation on a board that has this round and has made its steps."""

        def run() -> T:
            if self._session != self.board.sessions:
                self._begin()
            self._train()
            return operation()

        return self.board.retry(run)

    def _begin(self) -> None:
        greeting = self.board.greeting
        if not greeting.has_flash:
            raise DeviceError(f"{self.board.program.name}: round {self.number}", NO_FLASH)
        if greeting.round > self.number:
            raise DeviceError(f"round {self.number} after round {greeting.round}", ROUND)
        numbers = struct.pack("<III", self.number, zlib.crc32(self._data), self.options)
        mask = b"" if self._mask is None else struct.pack("<ff", self._mask.clip, self._mask.noise)
        request = (frames.ROUND, numbers + mask)
        has_it = greeting.round == self.number
        status, answer = self.board.link.run(
            [request] if has_it else [(frames.BEGIN, b""), *self._writes, request]
        )
        if status:
            raise DeviceError(f"{self.board.program.name}: round {self.number}", status)
        self.samples, steps, elements, checkpoint, total, self.identity = replies.unpack(
            "ROUND", "<6I", answer
        )
        if elements != self.elements:
            raise LinkError(
                f"the board shares {elements:,} elements, expected {self.elements:,}: build and upload its firmware "
                "again"
            )
        self.board.greeting = replace(
            self.board.greeting,
            round=self.number,
            checkpoint=checkpoint,
            steps=total,
            incomplete=False,
            start=0,
        )
        self.local = LocalTraining(steps, 0, math.nan)
        self._session = self.board.sessions

    def _train(self) -> None:
        work, known = self._work, self.local.steps == 0 or self.local.examples > 0
        if self.local.steps > work.steps:
            raise replies.strange_steps(self.local.steps, 0, work.steps)
        while self.local.steps < work.steps or not known:
            first = self.local.steps
            steps = min(AT_ONCE, work.steps - first)
            numbers = (self.number, first, steps, work.n, work.rate, work.mu, work.seed)
            status, answer = self.board.link.exchange(frames.LOCAL, struct.pack("<IIHHffI", *numbers))
            if status:
                raise DeviceError(
                    f"round {self.number}: local step {self._steps_in_reply(answer) + 1}", status
                )
            made, examples, loss, cycles = replies.unpack("LOCAL", "<2IfQ", answer)
            if made != first + steps or examples < made:
                raise replies.strange_steps(made, first + steps, first + steps)
            self.board.greeting = replace(self.board.greeting, steps=self.board.greeting.steps + steps)
            # The reply does not say which of both the board counts.
            counts = (0, cycles) if isinstance(self.board.link.port, QemuPort) else (cycles, 0)
            self.local, known = (
                LocalTraining(made, examples, loss / made if made else math.nan, *counts),
                True,
            )

    @staticmethod
    def _steps_in_reply(answer: bytes) -> int:
        return int(struct.unpack_from("<I", answer)[0]) if len(answer) >= 4 else 0


def stored(slots: Sequence[Slot], weights: Mapping[str, Any]) -> bytes:
    """Arrays by name as the bytes of a board's shared part. Raises ModelError for a name that is missing, ShapeError
    for another shape."""
    if missing := [s.name for s in slots if s.name not in weights]:
        raise ModelError(f"the weights of a round miss {listed(missing)}")
    given_ = (slot.state.stored(given(slot, "weights", weights[slot.name])) for slot in slots)
    return b"".join(np.ascontiguousarray(array).tobytes() for array in given_)


def by_name(slots: Sequence[Slot], delta: Array) -> dict[str, Array]:
    """The elements of a difference as arrays in the shapes of the model."""
    arrays, at = {}, 0
    for slot in slots:
        count = slot.type.bytes // slot.type.dtype.size
        own, storage = delta[at : at + count].reshape(planned(slot.type.shape)), slot.state.storage
        arrays[slot.name] = own if storage is None else storage.of_zeros.restored(own)
        at += count
    return arrays


def _writes(program: Program, local_buffers: bool, data: bytes, room: int) -> list[Request]:
    """WRITEs of the shared part to where it is in the state."""
    requests, at = [], 0
    for run in shared_part(program):
        if local_buffers and run.is_buffer:
            continue
        part = data[at : at + run.end - run.offset]
        at += len(part)
        requests += [
            write_request(frames.STATE, kind, run.offset + k, piece)
            for kind, k, piece in raw_pieces(part, room)
        ]
    return requests
