"""The sender's window: the requests that are sent, those that are confirmed, and those that may be sent now."""

from __future__ import annotations

from collections.abc import Sequence

from . import frames
from .frames import Frame
from .timeouts import Timeouts


class SendWindow:
    """Requests of consecutive sequences, at most `limit` encoded bytes of them in flight (one if they are longer).

    `replies`: None for a request without one; `confirmed`: how many of the first requests the board has executed.
    """

    def __init__(self, requests: Sequence[Frame], limit: int, timeouts: Timeouts) -> None:
        self.requests, self._limit, self._timeouts = requests, limit, timeouts
        self.replies: list[Frame | None] = [None] * len(requests)
        self.confirmed = 0
        self._encoded = [r.encode() for r in requests]
        self._sent: list[float | None] = [None] * len(requests)  # when; None if not sent, or more than once
        self._next = self._furthest = 0  # the next to send; the end of those sent at least once
        self._needs_delimiter = requests[0].request == frames.HELLO
        self._stale = 0  # NAKs that requests sent before the last `back` may still cause

    @property
    def is_done(self) -> bool:
        return self.confirmed == len(self.requests)

    @property
    def due(self) -> Frame:
        """The first unconfirmed request."""
        return self.requests[self.confirmed]

    def data(self, now: float) -> bytes:
        """The bytes to send at the time `now`."""
        flying = sum(map(len, self._encoded[self.confirmed : self._next]))
        first = self._next
        while self._next < len(self.requests):
            size = len(self._encoded[self._next])
            if flying and flying + size > self._limit:
                break
            flying += size
            self._sent[self._next] = now if self._next >= self._furthest else None
            self._next += 1
        self._furthest = max(self._furthest, self._next)
        # A leading 0 terminates a frame that may have been cut off before.
        start = b"\0" if self._needs_delimiter and self._next > first else b""
        self._needs_delimiter = self._needs_delimiter and not start
        return start + b"".join(self._encoded[first : self._next])

    def back(self) -> int:
        """Send again from the first unconfirmed request on; returns how many requests that are."""
        count = self._next - self.confirmed
        self._stale, self._needs_delimiter = count - 1, True
        self._next = self.confirmed
        return count

    def answered(self, reply: Frame, now: float) -> bool:
        """Take a reply; returns whether it belongs to one of the requests in flight."""
        k = reply.sequence - self.requests[0].sequence
        if not 0 <= k < self._furthest or reply.request != self.requests[k].request | frames.REPLY:
            return False
        if self.replies[k] is None:
            self.replies[k] = reply
            sent = self._sent[k]
            if sent is not None:
                self._timeouts.took(self.requests[k].request, now - sent)
        self._confirm(k + 1)
        return True

    def is_missing(self, executed: int) -> bool:
        """Take a NAK, which names the last executed sequence; returns whether the first unconfirmed request is lost."""
        # Only its reply confirms the last request.
        self._confirm(min(executed - self.requests[0].sequence + 1, len(self.requests) - 1))
        if executed + 1 != self.due.sequence:
            return False
        self._stale -= 1
        return self._stale < 0

    def _confirm(self, count: int) -> None:
        if self.confirmed < count <= self._furthest:
            self.confirmed, self._stale = count, 0
            self._next = max(self._next, count)
