"""A board that runs a model, as an object: arrays in, losses and arrays out. Every step is executed exactly once."""

from __future__ import annotations

import ctypes
import math
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from numpy.typing import NDArray

from ..codegen.board_link_layout import LinkLayout, link_layout
from ..codegen.program import Program
from ..codegen.state_dict import check_state
from ..errors import ShapeError
from . import frames, replies
from .encoding import from_bytes, raw_pieces
from .errors import (
    DAMAGED,
    NO_CHECKPOINT,
    NO_FLASH,
    OTHER_PROGRAM,
    STATUS,
    STEP,
    SUM,
    DeviceError,
    LinkError,
    WentBack,
)
from .frames import Frame
from .inputs import batch_of, position, writes
from .link import Link, Request, SessionLost, write_request
from .peer import MOST_ROWS, MOST_STEPS, check_program
from .replies import Counters, Greeting
from .state import state_arrays, state_bytes
from .transport import BAUD, open_port

Array = NDArray[Any]
T = TypeVar("T")
GROUP = 1 << 13  # bytes of the state between two calls of `progress`
TRIES = 20  # sessions that one operation may use, each opened after the last was lost


def connect(
    program: Program, port: str, baud: int = BAUD, patience: float = 10.0, wait: float = 0.0
) -> Board:
    """The board at `port`, which must run the link firmware of this program. `patience`: seconds without a reply until
    a request fails; `wait`: seconds to retry a socket on which nothing listens yet. Raises LinkError."""
    return Board(program, Link(open_port(port, baud, wait), patience))


class Board:
    """A model on a board. Methods take the arrays of the model's `train_step` and `predict`, in the same order."""

    def __init__(self, program: Program, link: Link) -> None:
        self.program, self.link = program, link
        self.folder: Path | None = None  # of the emulator, where it reads inputs from a file
        self.scales: dict[str, float] = {}  # of inputs whose floats are integers times this number
        self.layout: LinkLayout = link_layout(program)
        self._lr = program.default_lr  # of steps without one; None where a schedule computes it
        self.sessions = 0  # opened so far; after a new one the board may have restarted
        self.greeting = self._greet()

    def _greet(self) -> Greeting:
        greeting = self.link.hello()
        self.sessions += 1
        check_program(self.program, self.layout, greeting)
        return greeting

    def refresh(self) -> None:
        """Read the greeting again after the board changed its state; other replies do not have the round number."""
        self.greeting = self._greet()

    def close(self) -> None:
        """Close the port."""
        self.link.port.close()

    def retry(self, operation: Callable[[], T]) -> T:
        """Run the operation; when the session is lost, open a new one and run it from its start."""
        for _ in range(TRIES):
            try:
                return operation()
            except SessionLost:
                self.greeting = self._greet()
            except DeviceError as error:
                if error.status != SUM:
                    raise
        raise LinkError(
            f"the board lost the session, or data on the way, {TRIES} times; does another program use its port?"
        )

    # Data

    def _inputs(self, arrays: Mapping[str, Array], targets: bool) -> tuple[list[Request], int]:
        return writes(self.layout, arrays, targets, self.link.payload - 4, self.scales, self.folder)

    def bytes_of(self, arrays: Sequence[Any]) -> int:
        """Bytes that a training step on these arrays sends."""
        requests, _ = self._inputs(self._batch(arrays, targets=True)[0], targets=True)
        return sum(Frame(n, 0, 0, 0, data).line_bytes for n, data in [*requests, (frames.TRAIN, bytes(16))])

    def _batch(self, arrays: Sequence[Any], targets: bool) -> tuple[dict[str, Array], int]:
        return batch_of(self.program, self.layout, arrays, targets)

    def order_of(self, name: str) -> int:
        """Position of an input in the model's own order."""
        return position(self.program, name)

    @property
    def start(self) -> str:
        """Why the board started with its initial weights instead of a checkpoint, as one line; empty if it did not."""
        status = self.greeting.start
        if status in (0, NO_CHECKPOINT, NO_FLASH):
            return ""
        what = STATUS.get(status, "unknown status")
        return (
            f"the board loaded no checkpoint and started with its initial weights: {what} (status {status})"
        )

    @property
    def could_continue(self) -> bool:
        """Whether the board started with its initial weights because its checkpoints are of another program."""
        return self.greeting.start == OTHER_PROGRAM

    def check_start(self, trains: bool = False) -> None:
        """Raises DeviceError if the board did not load its checkpoint because it is of another program, or because it
        is damaged. `trains`: a damaged checkpoint is no error, as the board may train from its initial weights."""
        status = self.greeting.start
        if self.could_continue or (status == DAMAGED and not trains):
            raise DeviceError("checkpoints", status)

    # Work

    @property
    def steps(self) -> int:
        """Training steps that the board's weights have had."""
        return self.greeting.steps

    def train_step(self, *arrays: Any, lr: float | None = None, repeat: int = 1) -> float:
        """One step (or `repeat`, on the same batch). Arguments: the inputs, then the targets. Returns the loss of the
        last step, before its update.

        Raises DeviceError when the board rejects the step, and WentBack when it has also restored its last checkpoint
        because it rejected `restore_after` steps in a row.
        """
        given, n = self._batch(arrays, targets=True)
        first, last = self.greeting.steps, self.greeting.steps + repeat
        if not 1 <= repeat <= MOST_ROWS or last > MOST_STEPS:
            raise ShapeError(
                f"repeat={repeat} after {first:,} steps: a request makes 1 to 65,535 steps, and the last is 2^32 - 1"
            )
        rate = self._lr if lr is None else lr

        def train() -> float:
            done = self.greeting.steps - first
            if done < 0 and self.program.restore_after:  # and the reply was lost with the session
                raise WentBack(self.greeting.steps)
            if not 0 <= done <= repeat:
                raise replies.strange_steps(self.greeting.steps, first, last)
            if done == repeat:  # the reply was lost with the session, the steps were not
                return self._last_loss()
            requests, crc = self._inputs(given, targets=True)
            request = struct.pack("<IHHfI", first + done, n, repeat - done, _float32(rate), crc)
            status, answer = self.link.run([*requests, (frames.TRAIN, request)])
            loss, steps = replies.trained(status, answer)
            if status == STEP and steps == last:
                status = 0
            if status and steps is not None and steps < first and self.program.restore_after:
                raise WentBack(steps, status)
            if status:
                raise DeviceError("the step was rejected", status)
            if steps is None or steps != last:
                raise replies.strange_steps(steps or 0, last, last)
            return loss

        try:
            loss = self.retry(train)
        except WentBack:
            self.refresh()
            raise
        self._update_greeting(steps=last)
        return loss

    def _last_loss(self) -> float:
        """The loss of the last step, from the reply to a TRAIN that is rejected because its step number is wrong."""
        _, answer = self.link.exchange(frames.TRAIN, struct.pack("<IHHfI", MOST_STEPS, 1, 0, 0.0, 0))
        return float(replies.unpack("TRAIN", "<fI", answer)[0])

    def _update_greeting(self, **changed: Any) -> None:
        """Change fields of the greeting after a request that made the state complete."""
        self.greeting = replace(self.greeting, incomplete=False, start=0, **changed)

    def predict(self, *arrays: Any) -> Any:
        """The outputs for the inputs: an array, or a dict by name if there are several. Raises DeviceError."""
        given, n = self._batch(arrays, targets=False)
        outs = self.layout.outputs
        size = sum(a.bytes(n) for a in outs) if len(outs) == 1 else self.layout.output_bytes

        def predict() -> bytes:
            requests, crc = self._inputs(given, targets=False)
            status, answer = self.link.run([*requests, (frames.PREDICT, struct.pack("<HHI", n, 0, crc))])
            if status:
                raise DeviceError("PREDICT", status)
            replies.check_length("PREDICT", 4 + min(size, self.link.payload - 4), answer)
            whole = answer[4:]
            if len(whole) < size:
                whole = self.link.read(frames.OUTPUT, 0, size)
            if zlib.crc32(whole) != struct.unpack_from("<I", answer)[0]:
                raise DeviceError("outputs", SUM)
            return whole

        data = self.retry(predict)
        arrays_out = {a.name: from_bytes(a, data[a.offset : a.offset + a.bytes(n)], n) for a in outs}
        return next(iter(arrays_out.values())) if len(arrays_out) == 1 else arrays_out

    def set_lr(self, lr: float) -> None:
        """Set the learning rate of steps without an `lr` argument."""
        self.retry(lambda: self.link.request(frames.SET_LR, struct.pack("<f", _float32(lr))))
        self._lr = lr

    def init(self, seed: int = 0) -> None:
        """Reset to the initial weights, step 0 and the model's learning rate. `seed`: 32 bits."""
        if not 0 <= seed < 1 << 32:
            raise ShapeError(f"seed {seed} is outside 0 to 2^32 - 1")
        self.retry(lambda: self.link.request(frames.INIT, struct.pack("<I", seed)))
        self._lr = self.program.default_lr
        self._update_greeting(steps=0, round=0)

    def counters(self) -> Counters:
        """The board's event counters since its start."""
        layout = replies.COUNTERS
        return Counters(*layout.unpack(self.retry(lambda: self.link.read(frames.COUNTERS, 0, layout.size))))

    # Weights

    def state_dict(self, progress: Callable[[int, int], None] | None = None) -> dict[str, Array]:
        """All parameters, then the optimizer's state, by name, in the model's shapes. `progress(done, total)` is
        called with byte counts."""
        size = self.program.state_bytes

        def read() -> bytes:
            parts = []
            for start in range(0, size, GROUP):
                parts.append(self.link.read(frames.STATE, start, min(GROUP, size - start)))
                if progress is not None:
                    progress(min(start + GROUP, size), size)
            data = b"".join(parts)
            (crc,) = self.link.request(frames.SUM, struct.pack("<I", frames.STATE << 28), "<I")
            if zlib.crc32(data) != crc:
                raise DeviceError("state", SUM)
            return data

        return state_arrays(self.program, self.retry(read))

    def load_state_dict(
        self,
        state: Mapping[str, Any],
        steps: int = 0,
        strict: bool = True,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Send parameters and state by name; `steps` becomes the board's step count. A checksum at the end covers all.

        `strict`: missing and unexpected names are errors; otherwise the board keeps its values for missing names. The
        optimizer's state may be left out as a whole, and frozen parameters and buffers too.
        """
        if not 0 <= steps <= MOST_STEPS:
            raise ShapeError(f"steps {steps} is outside 0 to 2^32 - 1")
        check_state(self.program, "weights", state, strict)
        own = {} if all(s.name in state for s in self.program.slots) else self.state_dict()
        data = state_bytes(self.program, {**own, **state})

        def write() -> None:
            self.link.request(frames.BEGIN)
            for start in range(0, len(data), GROUP):
                pieces = raw_pieces(data[start : start + GROUP], self.link.payload - 4)
                requests = [write_request(frames.STATE, kind, start + at, part) for kind, at, part in pieces]
                status, _ = self.link.run(requests)
                if status:
                    raise DeviceError("WRITE", status)
                if progress is not None:
                    progress(min(start + GROUP, len(data)), len(data))
            self.link.request(frames.END, struct.pack("<II", zlib.crc32(data), steps))

        self.retry(write)
        self._update_greeting(steps=steps, round=0)

    def save(self) -> int:
        """Write a checkpoint to the board's flash; returns its sequence number."""
        (sequence,) = self.retry(lambda: self.link.request(frames.SAVE, b"", "<I"))
        self._update_greeting(checkpoint=sequence, round=0)
        return int(sequence)

    def load(self, any_program: bool = False) -> int:
        """Restore the newest checkpoint of the board's flash; returns its step count. `any_program`: also one of
        another program with the same states."""
        which = struct.pack("<I", frames.LOAD_ANY if any_program else frames.LOAD_OWN)
        self.retry(lambda: self.link.request(frames.LOAD, which, "<II"))
        self.refresh()
        return self.steps


def _float32(rate: float | None) -> float:
    """A learning rate as the board gets it: infinite where it is too large; not a number where a schedule computes
    it."""
    return math.nan if rate is None else ctypes.c_float(rate).value
