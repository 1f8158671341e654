"""A board as a rank of synchronous training (docs/link.md): it adds up the gradients of its share of a batch, and makes
the step of the sums of all ranks. Every request names the state that it starts from, so that a step is made once."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.exchanged_part import draws_in_apply, exchanged_part, is_sum
from ..codegen.program import Program, Slot
from . import frames, replies
from .board import Board
from .encoding import raw_pieces
from .errors import STEP, SUM, SUMS, DeviceError
from .link import Request, write_request
from .state import arrays_of, slot_bytes, state_bytes

Array = NDArray[Any]
Part = dict[str, Array]  # the exchanged part of a state: arrays by name


def exchanged_slots(program: Program) -> list[Slot]:
    """The states of the exchanged part, in their order."""
    return [s for run in exchanged_part(program) for s in run.slots]


def after_apply(program: Program, part: Mapping[str, Array]) -> Part:
    """An exchanged part after `apply`: sums are 0, and counters are increased."""
    found = dict(part)
    for slot in exchanged_slots(program):
        if is_sum(slot):
            found[slot.name] = np.zeros_like(part[slot.name])
        elif draws_in_apply(program, slot):
            found[slot.name] = part[slot.name] + part[slot.name].dtype.type(1)
    return found


def checksum_of_rest(program: Program, data: bytes) -> int:
    """The checksum of the bytes of a whole state without the exchanged part."""
    crc = at = 0
    for run in exchanged_part(program):
        crc, at = zlib.crc32(data[at : run.offset], crc), run.offset + run.bytes
    return zlib.crc32(data[at:], crc)


class GradientRank:
    """A board that takes part. Every operation survives a lost session. A board that restarts loses its weights, which
    raises DeviceError or LinkError."""

    def __init__(self, board: Board, name: str, kind: str) -> None:
        self.board, self.name, self.kind = board, name, kind
        self._runs = exchanged_part(board.program)
        self._slots = exchanged_slots(board.program)
        self._known: dict[str, bytes] = {}  # the pieces of the exchanged part that the board has for certain
        self._rest = 0  # checksum of all other states
        self.steps = 0

    def load(self, state: Mapping[str, Any], steps: int) -> None:
        """Send a whole state."""
        self.board.load_state_dict(state, steps)
        self._rest = checksum_of_rest(self.board.program, state_bytes(self.board.program, state))
        self._known, self.steps = self._stored(state), steps

    def state(self) -> dict[str, Array]:
        """The board's whole state."""
        return self.board.state_dict()

    def accumulate(
        self, part: Mapping[str, Array], batches: Sequence[Sequence[Any]]
    ) -> tuple[list[float], Part]:
        """Add up the gradients of batches, each the arrays of `train_step`, beginning with `part`. Returns their losses
        and the exchanged part after them."""
        start = self._stored(part)

        def run() -> tuple[list[float], bytes]:
            self._check_step(self.steps)
            losses, crc = [], zlib.crc32(b"".join(start.values()))
            prepare = self._writes(start)
            for arrays in batches:
                given, n = self.board._batch(arrays, targets=True)
                inputs, sum_of_inputs = self.board._inputs(given, targets=True)
                numbers = struct.pack("<IHHIII", self.steps, n, 0, sum_of_inputs, crc, self._rest)
                status, answer = self.board.link.run([*prepare, *inputs, (frames.ACCUMULATE, numbers)])
                if status:
                    raise DeviceError(f"step {self.steps + 1:,}", status)
                loss, crc = replies.unpack("ACCUMULATE", "<fI", answer)
                losses.append(loss)
                prepare = []
            data = b"".join(self.board.link.read(frames.STATE, r.offset, r.bytes) for r in self._runs)
            if zlib.crc32(data) != crc:
                raise DeviceError("sums of gradients", SUM)
            return losses, data

        losses, data = self._once_more(run)
        found = arrays_of(self._slots, data)
        self._known = self._stored(found)
        return losses, found

    def apply(self, part: Mapping[str, Array], lr: float | None) -> int:
        """The step of the sums in `part`. Returns a checksum of the weights and of the optimizer's state after it."""
        wanted, program = self._stored(part), self.board.program

        def run() -> int:
            self._check_step(self.steps, self.steps + 1)
            crc = zlib.crc32(b"".join(wanted.values()))
            rate = math.nan if lr is None else lr
            request = (frames.APPLY, struct.pack("<IfII", self.steps, rate, crc, self._rest))
            is_done = self.board.greeting.steps > self.steps  # and the reply was lost with the session
            prepare = [] if is_done else self._writes(wanted)
            status, answer = self.board.link.run([*prepare, request])
            if status not in (0, STEP):
                raise DeviceError(f"step {self.steps + 1:,}", status)
            steps, rest = replies.unpack("APPLY", "<II", answer)
            if steps != self.steps + 1:
                raise replies.strange_steps(steps, self.steps + 1, self.steps + 1)
            return int(rest)

        self._rest = self._once_more(run)
        self.steps += 1
        self.board.greeting = replace(self.board.greeting, steps=self.steps, incomplete=False, start=0)
        self._known = self._stored(after_apply(program, part))
        return self._rest

    def _check_step(self, *expected: int) -> None:
        if (steps := self.board.greeting.steps) not in expected:
            raise replies.strange_steps(steps, expected[0], expected[-1])

    def _once_more(self, run: Callable[[], Any]) -> Any:
        """Run the operation, and once more if the board has other sums than expected."""
        try:
            return self.board.retry(run)
        except DeviceError as error:
            if error.status != SUMS:
                raise
        return self.board.retry(run)

    def _stored(self, part: Mapping[str, Any]) -> dict[str, bytes]:
        return {s.name: slot_bytes(s, part[s.name]) for s in self._slots}

    def _writes(self, wanted: Mapping[str, bytes]) -> list[Request]:
        """The requests after which the exchanged part on the board is `wanted`. After that `_known` is empty: only
        the next reply tells which of these requests the board has executed."""
        known, self._known = self._known, {}
        requests: list[Request] = []
        for run in self._runs:
            at = run.offset
            for slot in run.slots:
                if known.get(slot.name) != wanted[slot.name]:
                    pieces = raw_pieces(wanted[slot.name], self.board.link.payload - 4)
                    requests += [write_request(frames.STATE, kind, at + k, data) for kind, k, data in pieces]
                at += 4 * slot.words
        return [(frames.BEGIN, b""), *requests] if requests else []
