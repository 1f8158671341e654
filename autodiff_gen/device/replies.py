"""The payloads of a board's replies. A peer may send anything: lengths, and fields that the host depends on, are
checked here."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Any

from . import frames
from .errors import LinkError

_GREETING = struct.Struct("<BBH7I16sIII")
_LEAST_PAYLOAD = 60
_UNKNOWN = "build and upload its firmware again, and check that no other program uses the port"


@dataclass(frozen=True)
class Greeting:
    """The board's reply to HELLO."""

    version: int
    payload: int
    has_flash: bool
    incomplete: bool
    graph_id: int
    batch: int
    state_bytes: int
    input_bytes: int
    output_bytes: int
    steps: int
    checkpoint: int  # sequence of the last one saved or loaded, 0 for none
    name: str
    start: int = 0  # status of loading a checkpoint when the board started
    window: int = 0  # bytes of requests that may be in flight
    program_id: int = 0  # identifies the computation of the firmware: model/program_id.py
    round: int = 0  # of federated training; 0 outside it


@dataclass(frozen=True)
class Counters:
    """The board's event counters (runtime/ag_link.h)."""

    steps: int
    trained: int
    rejected: int
    predicted: int
    saved: int
    frames: int
    damaged: int
    repeated: int
    unexpected: int
    overruns: int
    restored: int


COUNTERS = struct.Struct("<11I")


def unpack(name: str, layout: str, payload: bytes) -> tuple[Any, ...]:
    """The numbers of a reply to the request `name`. Raises LinkError for another length."""
    check_length(name, struct.calcsize(layout), payload)
    return struct.unpack(layout, payload)


def check_length(name: str, expected: int, payload: bytes) -> None:
    """Raises LinkError for a reply of another length."""
    if len(payload) != expected:
        raise LinkError(
            f"the board's reply to {name} has {len(payload)} bytes, expected {expected}: {_UNKNOWN}"
        )


def greeting(status: int, payload: bytes) -> Greeting:
    """The reply to HELLO. Raises LinkError for another version of the protocol, and for values that no board sends."""
    version = payload[0] if payload else 0
    if status or version != frames.VERSION:
        raise LinkError(
            f"the board has protocol version {version}, the host version {frames.VERSION}: "
            "build and upload the firmware again"
        )
    check_length("HELLO", _GREETING.size, payload)
    _, size, flags, *numbers, name, window, program_id, round_ = _GREETING.unpack(payload)
    if not _LEAST_PAYLOAD <= size <= frames.PAYLOAD or size % 4:
        raise LinkError(f"the board says that a frame has {size} bytes of data: {_UNKNOWN}")
    graph_id, batch, state_bytes, input_bytes, output_bytes, steps, checkpoint = numbers
    return Greeting(
        version,
        size,
        bool(flags & 1),
        bool(flags & 2),
        graph_id,
        batch,
        state_bytes,
        input_bytes,
        output_bytes,
        steps,
        checkpoint,
        name.rstrip(b"\0").decode("utf-8", "replace"),
        -(flags >> 8),
        window,
        program_id,
        round_,
    )


def trained(status: int, payload: bytes) -> tuple[float, int | None]:
    """Loss and step count in the reply to TRAIN; of a rejected request the count may be missing."""
    if status and not payload:
        return math.nan, None
    loss, steps = unpack("TRAIN", "<fI", payload)
    return float(loss), int(steps)


def strange_steps(steps: int, first: int, last: int) -> LinkError:
    """The error for a step count that is not from `first` to `last`."""
    expected = f"{first:,}" if first == last else f"{first:,} to {last:,}"
    return LinkError(f"the board is at step {steps:,}, expected {expected}: does another program train it?")
