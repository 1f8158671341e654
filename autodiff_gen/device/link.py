"""Requests and replies: as many requests are in flight as the board buffers, and each is executed once, in order.

Go-back-N (Tanenbaum, Computer Networks, 3.4.2): a reply to a request confirms all before it. After a NAK, which names
the last executed request, and after a timeout, the requests from the first unconfirmed one on are sent again.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from . import frames, replies
from .errors import SEQUENCE, SESSION, STATUS, DeviceError, LinkError, Unreachable
from .frames import Decoder, Frame
from .replies import Greeting
from .timeouts import Timeouts
from .transport import Transport
from .window import SendWindow

Request = tuple[int, bytes]  # number and payload
Answer = tuple[int, bytes]  # status and payload


class SessionLost(LinkError):
    """The board has another session: it was reset, or another program uses its port."""


@dataclass
class Traffic:
    """Counts since the port was opened."""

    requests: int = 0
    sent: int = 0  # bytes
    received: int = 0
    resent: int = 0  # requests
    damaged: int = 0  # received data that were no frame


class Link:
    """The host's end of the link. `patience`: seconds without a reply until a request fails. `now`: the clock."""

    def __init__(
        self, port: Transport, patience: float = 10.0, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.port, self.patience, self.now = port, patience, now
        self.traffic = Traffic()
        self.payload, self.window = 0, 0  # of the board, after HELLO
        self._decoder = Decoder()
        self._session = 0
        self._sequence = 0
        self._timeouts = Timeouts()

    def hello(self) -> Greeting:
        """Open a session. Raises LinkError when the board is silent or has another protocol version."""
        nonce = struct.unpack("<I", os.urandom(4))[0]
        self.window, resent = 0, self.traffic.resent
        (reply,) = self._exchange([Frame(frames.HELLO, 0, 0, nonce, bytes((frames.VERSION, 0, 0, 0)))])
        self.traffic.resent = resent  # the board may still have been starting
        if reply is None:
            raise Unreachable(
                f"the board is silent: no reply in {self.patience:g} s; check the port, the baud rate, and that it "
                "runs the link's firmware (./scons board=... model=... link)"
            )
        greeting = replies.greeting(reply.status, reply.payload)
        self._session, self._sequence = reply.session, 0
        self.payload, self.window = greeting.payload, greeting.window
        return greeting

    def request(self, number: int, payload: bytes = b"", layout: str = "<") -> tuple[Any, ...]:
        """The numbers in the reply, whose format is `layout`. Raises DeviceError when the board rejects the request,
        LinkError for a reply of another length, SessionLost when the board has another session."""
        status, answer = self.exchange(number, payload)
        if status:
            raise DeviceError(_name(number), status)
        return replies.unpack(_name(number), layout, answer)

    def exchange(self, number: int, payload: bytes = b"") -> Answer:
        """Status and payload of the reply. Raises LinkError without a reply, SessionLost for another session."""
        (answer,) = self.pipeline([(number, payload)])
        assert answer is not None  # the last request always has one
        return answer

    def pipeline(self, requests: Sequence[Request]) -> list[Answer | None]:
        """Send all requests without waiting for each reply; the board executes them in order. The last one has an
        answer; another one that was executed, and whose reply was lost, has None. So only a request that may be
        repeated or needs no reply, such as READ or WRITE, may be before the last. Raises like `exchange`."""
        first = self._sequence + 1
        self._sequence += len(requests)
        sent = [Frame(n, 0, self._session, first + k, data) for k, (n, data) in enumerate(requests)]
        replies = self._exchange(sent)
        if replies[-1] is None:
            name = _name(requests[-1][0])
            raise LinkError(f"the board no longer answers: {name} got no reply in {self.patience:g} s")
        return [None if r is None else (r.status, r.payload) for r in replies]

    def run(self, requests: Sequence[Request]) -> Answer:
        """Send requests, such as WRITEs and a TRAIN; returns the answer to the last. Raises DeviceError if the board
        rejects another one."""
        *others, last = self.pipeline(requests)
        for (number, _), answer in zip(requests, others, strict=False):
            if answer is not None and answer[0]:
                raise DeviceError(_name(number), answer[0])
        assert last is not None
        return last

    def read(self, source: int, offset: int, count: int) -> bytes:
        """Bytes of an object, by as many READs as it takes. Raises DeviceError."""
        starts = range(offset, offset + count, self.payload)
        parts: dict[int, bytes] = {}
        while missing := [s for s in starts if s not in parts]:  # again: those whose reply was lost
            sizes = [min(self.payload, offset + count - s) for s in missing]
            requests = [
                (frames.READ, struct.pack("<IB", source << 28 | s, size))
                for s, size in zip(missing, sizes, strict=True)
            ]
            for s, size, answer in zip(missing, sizes, self.pipeline(requests), strict=True):
                if answer is not None and answer[0]:
                    raise DeviceError("READ", answer[0])
                if answer is not None:
                    replies.check_length("READ", size, answer[1])
                    parts[s] = answer[1]
        return b"".join(parts[s] for s in starts)

    def _exchange(self, requests: Sequence[Frame]) -> list[Frame | None]:
        """Send until the last one is answered, or until `patience` seconds passed without any confirmation."""
        window = SendWindow(requests, self.window, self._timeouts)
        self.traffic.requests += len(requests)
        progress, wait = self.now(), self._timeouts.of(window.due.request)
        due = progress + wait
        while True:
            self._send(window.data(self.now()))
            before = window.confirmed
            lost = self._receive(window, min(due, progress + self.patience))
            if window.is_done:
                return window.replies
            now = self.now()
            if window.confirmed > before:
                progress, wait = now, self._timeouts.of(window.due.request)
                due = now + wait
            if lost or now >= due:
                self.traffic.resent += window.back()
                wait = wait if lost else self._timeouts.longer(wait)
                due = now + wait
            if now >= progress + self.patience:
                return window.replies

    def _send(self, data: bytes) -> None:
        if data:
            self.traffic.sent += len(data)
            self.port.write(data)

    def _receive(self, window: SendWindow, limit: float) -> bool:
        """Wait for bytes until the time `limit`; returns whether a NAK requests a repetition."""
        data = self.port.read(max(limit - self.now(), 0.0))
        self.traffic.received += len(data)
        lost = False
        greets = window.requests[0].request == frames.HELLO
        for frame in self._decoder.feed(data):
            if window.is_done:
                break
            if not greets and frame.session != self._session:
                continue
            if frame.request == frames.NAK:
                lost |= greets or window.is_missing(frame.sequence)
            elif window.answered(frame, self.now()) and frame.status in (SESSION, SEQUENCE):
                raise SessionLost(f"{_name(frame.request & ~frames.REPLY)}: {STATUS[frame.status]}")
        self.traffic.damaged = self._decoder.damaged
        return lost


def write_request(target: int, encoding: int, offset: int, data: bytes) -> Request:
    """A WRITE of `data` to an object."""
    return frames.WRITE, struct.pack("<I", target << 28 | encoding << 24 | offset) + data


def _name(request: int) -> str:
    return frames.NAMES.get(request, f"request {request}")
