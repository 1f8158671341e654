"""A board that runs a model, as an object: arrays in, losses and arrays out. Every step is executed exactly once."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from numpy.typing import NDArray

from ..codegen.link_layout import LinkLayout, link_layout
from ..codegen.program import Program
from ..codegen.state_dict import check_state
from ..errors import ShapeError
from ..host.arguments import Batch, checked
from . import frames
from .encoding import from_bytes, raw_pieces, shortest
from .errors import NO_CHECKPOINT, NO_FLASH, STATUS, STEP, SUM, DeviceError, LinkError, WentBack
from .frames import Frame
from .link import Counters, Greeting, Link, Request, SessionLost, write_request
from .state import state_arrays, state_bytes
from .transport import BAUD, open_port

Array = NDArray[Any]
T = TypeVar("T")
INPUTS = "inputs.bin"  # in the emulator's folder: all inputs of a step, as the board stores them
GROUP = 1 << 13  # bytes of the state between two calls of `progress`
TRIES = 20  # sessions that one operation may use, each opened after the last was lost


def connect(
    program: Program, port: str, baud: int = BAUD, patience: float = 10.0, wait: float = 0.0
) -> Board:
    """The board at `port`, which must run the link firmware of this program. Raises LinkError."""
    return Board(program, Link(open_port(port, baud, wait), patience))


class Board:
    """A model on a board. Methods take the arrays of the model's `train_step` and `predict`, in the same order."""

    def __init__(self, program: Program, link: Link) -> None:
        self.program, self.link = program, link
        self.folder: Path | None = None  # of the emulator, where it reads inputs from a file
        self.scales: dict[str, float] = {}  # of inputs whose floats are integers times this number
        self.layout: LinkLayout = link_layout(program)
        self.greeting = self._greet()

    def _greet(self) -> Greeting:
        greeting = self.link.hello()
        p = self.program
        if greeting.graph_id != p.graph_id:
            raise LinkError(
                f"the board runs another model: {greeting.name!r} with graph id {greeting.graph_id:08x}, this one is "
                f"{p.name!r} with {p.graph_id:08x}; build and upload its firmware, or name the board's model"
            )
        sizes = (p.batch, p.state_bytes, self.layout.input_bytes, self.layout.output_bytes)
        theirs = (greeting.batch, greeting.state_bytes, greeting.input_bytes, greeting.output_bytes)
        if sizes != theirs:
            raise LinkError(
                f"the board's firmware has other sizes (batch, state, inputs, outputs: {theirs}, here {sizes}); "
                "build and upload it again"
            )
        return greeting

    def close(self) -> None:
        """Close the port."""
        self.link.port.close()

    def _retry(self, operation: Callable[[], T]) -> T:
        """Run the operation; when the session is lost, open a new one and run it from its start."""
        for _ in range(TRIES):
            try:
                return operation()
            except SessionLost:
                self.greeting = self._greet()
            except DeviceError as error:
                if error.status != SUM:
                    raise
        raise LinkError(f"the board lost the session {TRIES} times; does another program use its port?")

    # Data

    def _inputs(self, arrays: Mapping[str, Array], targets: bool) -> tuple[list[Request], int]:
        """The requests that write all inputs, and the CRC-32 of their bytes as the board stores them."""
        crc, requests, room = 0, [], self.link.payload - 4
        image = bytearray(self.layout.input_bytes)
        for a in self.layout.inputs:
            if a.is_target and not targets:
                continue
            raw = arrays[a.name].tobytes()
            crc = zlib.crc32(raw, crc)
            image[a.offset : a.offset + len(raw)] = raw
            if self.folder is not None:
                continue
            pieces = raw_pieces(raw, room)
            if a.type.dtype.name == "f32":
                pieces = shortest(arrays[a.name], room, self.scales.get(a.name))
            requests += [
                write_request(frames.INPUT, encoding, a.offset + at, data) for encoding, at, data in pieces
            ]
        if self.folder is not None:
            (self.folder / INPUTS).write_bytes(image)
            requests = [(frames.FETCH, struct.pack("<I", len(image)))]
        return requests, crc

    def bytes_of(self, arrays: Sequence[Any]) -> int:
        """Bytes that a training step on these arrays sends."""
        requests, _ = self._inputs(self._batch(arrays, targets=True)[0], targets=True)
        return sum(Frame(n, 0, 0, 0, data).line_bytes for n, data in [*requests, (frames.TRAIN, bytes(16))])

    def _batch(self, arrays: Sequence[Any], targets: bool) -> tuple[dict[str, Array], int]:
        inputs = [a for a in self.layout.inputs if targets or not a.is_target]
        inputs.sort(key=lambda a: self.order_of(a.name))
        if len(arrays) != len(inputs):
            expected = ", ".join(f"{a.name}: {a.type!r}" for a in inputs)
            raise ShapeError(f"expected {len(inputs)} arrays ({expected}), got {len(arrays)}")
        batch = Batch(self.program.batch)
        by_name = {a.name: checked(a.arg, value, batch) for a, value in zip(inputs, arrays, strict=True)}
        return by_name, batch.rows

    def order_of(self, name: str) -> int:
        """Position of an input in the model's own order (the C functions take arrays before scalars)."""
        entry = next(e for e in self.program.entries if e.name == "train_step")
        return [v.name for v in entry.plan.graph.inputs].index(name)

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
        first = self.greeting.steps

        def train() -> float:
            done = self.greeting.steps - first
            if done < 0:  # the board restored a checkpoint, and its reply was lost with the session
                raise WentBack(self.greeting.steps)
            if done == repeat:  # the reply was lost with the session, the steps were not
                return self._last_loss()
            writes, crc = self._inputs(given, targets=True)
            rate = float("nan") if lr is None else lr
            request = struct.pack("<IHHfI", first + done, n, repeat - done, rate, crc)
            status, answer = self.link.run([*writes, (frames.TRAIN, request)])
            loss, steps = struct.unpack("<fI", answer) if len(answer) == 8 else (float("nan"), None)
            if status == STEP and steps == first + repeat:
                status = 0
            if status and steps is not None and steps < first:
                raise WentBack(steps, status)
            if status:
                raise DeviceError("the step was rejected", status)
            return float(loss)

        try:
            loss = self._retry(train)
        except WentBack as back:
            self._set_steps(back.steps)
            raise
        self._set_steps(first + repeat)
        return loss

    def _last_loss(self) -> float:
        """The loss of the last step, from the reply to a TRAIN that is rejected because its step number is wrong."""
        answer = self.link.exchange(frames.TRAIN, struct.pack("<IHHfI", 0xFFFFFFFF, 1, 0, 0.0, 0))[1]
        return float(struct.unpack("<fI", answer)[0])

    def _set_steps(self, steps: int, checkpoint: int | None = None) -> None:
        known = {f.name: getattr(self.greeting, f.name) for f in fields(Greeting)}
        known.update(steps=steps, incomplete=False, start=0)
        known.update({} if checkpoint is None else {"checkpoint": checkpoint})
        self.greeting = Greeting(**known)

    def predict(self, *arrays: Any) -> Any:
        """The outputs for the inputs: an array, or a dict by name if there are several. Raises DeviceError."""
        given, n = self._batch(arrays, targets=False)
        outs = self.layout.outputs
        size = sum(a.bytes(n) for a in outs) if len(outs) == 1 else self.layout.output_bytes

        def predict() -> bytes:
            writes, crc = self._inputs(given, targets=False)
            status, answer = self.link.run([*writes, (frames.PREDICT, struct.pack("<HHI", n, 0, crc))])
            if status:
                raise DeviceError("PREDICT", status)
            whole = answer[4 : 4 + size]
            if len(whole) < size:
                whole = self.link.read(frames.OUTPUT, 0, size)
            if zlib.crc32(whole) != struct.unpack_from("<I", answer)[0]:
                raise DeviceError("outputs", SUM)
            return whole

        data = self._retry(predict)
        arrays_out = {a.name: from_bytes(a, data[a.offset : a.offset + a.bytes(n)], n) for a in outs}
        return next(iter(arrays_out.values())) if len(arrays_out) == 1 else arrays_out

    def set_lr(self, lr: float) -> None:
        """Set the learning rate of steps without an `lr` argument."""
        self._retry(lambda: self.link.request(frames.SET_LR, struct.pack("<f", lr)))

    def init(self, seed: int = 0) -> None:
        """Reset to the initial weights and step 0."""
        self._retry(lambda: self.link.request(frames.INIT, struct.pack("<I", seed)))
        self._set_steps(0)

    def counters(self) -> Counters:
        """The board's event counters since its start."""
        data = self._retry(lambda: self.link.read(frames.COUNTERS, 0, 44))
        return Counters(*struct.unpack("<11I", data))

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
            (crc,) = struct.unpack("<I", self.link.request(frames.SUM, struct.pack("<I", frames.STATE << 28)))
            if zlib.crc32(data) != crc:
                raise DeviceError("state", SUM)
            return data

        return state_arrays(self.program, self._retry(read))

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
        check_state(self.program, "weights", state, strict)
        own = {} if all(s.name in state for s in self.program.slots) else self.state_dict()
        data = state_bytes(self.program, {**own, **state})

        def write() -> None:
            self.link.request(frames.BEGIN)
            for start in range(0, len(data), GROUP):
                pieces = raw_pieces(data[start : start + GROUP], self.link.payload - 4)
                writes = [write_request(frames.STATE, kind, start + at, part) for kind, at, part in pieces]
                status, _ = self.link.run(writes)
                if status:
                    raise DeviceError("WRITE", status)
                if progress is not None:
                    progress(min(start + GROUP, len(data)), len(data))
            self.link.request(frames.END, struct.pack("<II", zlib.crc32(data), steps))

        self._retry(write)
        self._set_steps(steps)

    def save(self) -> int:
        """Write a checkpoint to the board's flash; returns its sequence number."""
        (sequence,) = struct.unpack("<I", self._retry(lambda: self.link.request(frames.SAVE)))
        self._set_steps(self.greeting.steps, sequence)
        return int(sequence)

    def load(self) -> int:
        """Restore the newest checkpoint of the board's flash; returns its step count."""
        sequence, steps = struct.unpack("<II", self._retry(lambda: self.link.request(frames.LOAD)))
        self._set_steps(steps, sequence)
        return int(steps)
