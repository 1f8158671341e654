"""A serial line and a board in simulated time: bytes take as long as the baud rate says, frames may be lost."""

from __future__ import annotations

import struct
from collections import deque

from autodiff_gen.device import frames
from autodiff_gen.device.frames import Decoder, Frame


class Peer:
    """The board's rules of the link (runtime/ag_link.c) without a model: `executed` are the requests, in order."""

    def __init__(self, window, payload=frames.PAYLOAD):
        self.window, self.payload = window, payload
        self.executed, self.sequence, self.last = [], 0, None

    def reply(self, f):
        if f.request == frames.HELLO:
            greeting = (frames.VERSION, self.payload, 0, *[0] * 7, b"peer", self.window, 0, 0)
            numbers = struct.pack("<BBH7I16sIII", *greeting)
            return Frame(f.request | frames.REPLY, 0, 7, f.sequence, numbers)
        if f.sequence == self.sequence:
            return self.last
        if f.sequence < self.sequence:
            return None
        if f.sequence > self.sequence + 1:
            return Frame(frames.NAK, 0, 7, self.sequence)
        self.sequence = f.sequence
        self.executed.append((f.request, f.payload))
        answer = bytes(f.payload[4:5]) * f.payload[4] if f.request == frames.READ else b""
        self.last = Frame(f.request | frames.REPLY, 0, 7, f.sequence, answer)
        return self.last


class Direction:
    """One direction: bytes sent at a time arrive one after the other, `latency` seconds late."""

    def __init__(self, baud, latency):
        self.byte, self.latency, self.free = 10 / baud, latency, 0.0

    def send(self, data, now):
        """The time at which the last byte has arrived."""
        self.free = max(self.free, now) + len(data) * self.byte
        return self.free + self.latency


class SimulatedLine:
    """A port to a Peer. `lost()`: whether the next frame, of either direction, is lost."""

    def __init__(self, peer, baud=921600, latency=0.001, lost=lambda: False):
        self.peer, self.lost = peer, lost
        self.time = 0.0
        self._up, self._down = Direction(baud, latency), Direction(baud, latency)
        self._decoder = Decoder()
        self._arriving = deque()  # (time, bytes) to the host

    def now(self):
        return self.time

    def write(self, data):
        for part in data.split(b"\0")[:-1]:
            arrived = self._up.send(part + b"\0", self.time)
            if self.lost():
                continue
            for frame in self._decoder.feed(part + b"\0"):
                reply = self.peer.reply(frame)
                if reply is not None:
                    encoded = reply.encode()
                    late = self._down.send(encoded, arrived)
                    if not self.lost():
                        self._arriving.append((late, encoded))

    def read(self, timeout):
        limit = self.time + timeout
        if not self._arriving or self._arriving[0][0] > limit:
            self.time = limit
            return b""
        self.time = max(self.time, self._arriving[0][0])
        data = b""
        while self._arriving and self._arriving[0][0] <= self.time:
            data += self._arriving.popleft()[1]
        return data

    def close(self):
        pass
