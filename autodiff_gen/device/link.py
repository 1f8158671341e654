"""Requests and replies: a request is sent until it is answered, and executed once."""

from __future__ import annotations

import os
import struct
import time
from dataclasses import dataclass

from . import frames
from .errors import STATUS, DeviceError, LinkError
from .frames import Decoder, Frame
from .transport import Transport

SHORTEST, LONGEST = 0.005, 2.0  # seconds until a request is sent again


class SessionLost(LinkError):
    """The board has another session: it was reset, or another program uses its port."""


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


_GREETING = struct.Struct("<BBH7I16s")


@dataclass
class Traffic:
    """Traffic counters."""

    requests: int = 0
    sent: int = 0  # bytes
    received: int = 0
    again: int = 0  # requests that were sent again
    damaged: int = 0  # received data that were no frame


class Link:
    """The host's end of the link. `patience`: seconds without a reply until a request fails."""

    def __init__(self, port: Transport, patience: float = 10.0) -> None:
        self.port, self.patience = port, patience
        self.traffic = Traffic()
        self._decoder = Decoder()
        self._session = 0
        self._sequence = 0
        self._usual: dict[int, float] = {}  # mean response time by request, in seconds

    def hello(self) -> Greeting:
        """Open a session. Raises LinkError when the board is silent or has another protocol version."""
        nonce = struct.unpack("<I", os.urandom(4))[0]
        reply = self._exchange(Frame(frames.HELLO, 0, 0, nonce, bytes((frames.VERSION, 0, 0, 0))))
        if reply is None:
            raise LinkError(
                f"the board is silent: no reply in {self.patience:g} s; check the port, the baud rate, and that it "
                "runs the link's firmware (./scons board=... model=... link)"
            )
        version = reply.payload[0] if reply.payload else 0
        if reply.status or version != frames.VERSION or len(reply.payload) != _GREETING.size:
            raise LinkError(
                f"the board has protocol version {version}, the host version {frames.VERSION}: "
                "build and upload the firmware again"
            )
        self._session, self._sequence = reply.session, 0
        _, payload, flags, *numbers, name = _GREETING.unpack(reply.payload)
        text = name.rstrip(b"\0").decode("utf-8", "replace")
        ids: tuple[int, int, int, int, int, int, int] = tuple(numbers)
        return Greeting(version, payload, bool(flags & 1), bool(flags & 2), *ids, text, -(flags >> 8))

    def request(self, number: int, payload: bytes = b"") -> bytes:
        """The payload of the reply. Raises DeviceError when the board rejects the request, SessionLost when it has
        another session."""
        status, answer = self.exchange(number, payload)
        if status:
            raise DeviceError(frames.NAMES[number], status)
        return answer

    def exchange(self, number: int, payload: bytes = b"") -> tuple[int, bytes]:
        """Status and payload of the reply. Raises LinkError without one, SessionLost for another session."""
        self._sequence = (self._sequence + 1) & 0xFFFFFFFF
        reply = self._exchange(Frame(number, 0, self._session, self._sequence, payload))
        if reply is None:
            raise LinkError(
                f"the board no longer answers: {frames.NAMES[number]} got no reply in {self.patience:g} s"
            )
        if reply.status in (-35, -36):
            raise SessionLost(f"{frames.NAMES[number]}: {STATUS[reply.status]}")
        return reply.status, reply.payload

    def _exchange(self, frame: Frame) -> Frame | None:
        """Send until the reply is received; None after `patience` seconds."""
        data = frame.encode()
        usual = self._usual.get(frame.request, 0.1)
        wait = min(max(SHORTEST, 4 * usual), LONGEST)
        begin = time.monotonic()
        self.traffic.requests += 1
        attempt = 0
        while True:
            # The leading 0 terminates a frame that may have been cut off before.
            self._send(data if attempt == 0 and frame.request != frames.HELLO else b"\0" + data)
            limit = min(time.monotonic() + wait, begin + self.patience)
            reply = self._reply(limit, frame)
            if reply is not None:
                took = time.monotonic() - begin
                if attempt == 0:
                    self._usual[frame.request] = (
                        0.8 * usual + 0.2 * took if frame.request in self._usual else took
                    )
                return reply
            attempt += 1
            self.traffic.again += 1
            if time.monotonic() >= begin + self.patience:
                return None
            wait = min(wait * 1.5, LONGEST)

    def _send(self, data: bytes) -> None:
        self.traffic.sent += len(data)
        self.port.write(data)

    def _reply(self, limit: float, frame: Frame) -> Frame | None:
        """The reply to `frame`; None after the time `limit`, or at once when a NAK is received."""
        while True:
            left = limit - time.monotonic()
            if left <= 0:
                return None
            data = self.port.read(left)
            self.traffic.received += len(data)
            nak = False
            for received in self._decoder.feed(data):
                if received.request == frame.request | frames.REPLY and received.sequence == frame.sequence:
                    return received
                nak |= received.request == frames.NAK
            self.traffic.damaged = self._decoder.damaged
            if nak:
                return None
