"""Fault injection: damage, drop or duplicate frames at random, from a seed."""

from __future__ import annotations

import random
from pathlib import Path

from .transport import Transport


class FaultyTransport:
    """A transport that injects faults in both directions: into `share` of the frames and `bytes` of the bytes."""

    def __init__(self, port: Transport, seed: int, share: float = 0.0, bytes: float = 0.0) -> None:
        self.port, self.share, self.bytes = port, share, bytes
        self.accidents = 0
        self._random = random.Random(seed)
        self._held = b""

    @property
    def baud(self) -> int | None:
        return self.port.baud

    @property
    def folder(self) -> Path | None:
        return self.port.folder

    def write(self, data: bytes) -> None:
        *whole, rest = data.split(b"\0")
        self.port.write(b"".join(self._through(part + b"\0") for part in whole) + rest)

    def read(self, timeout: float) -> bytes:
        self._held += self.port.read(timeout)
        end = self._held.rfind(b"\0") + 1
        whole, self._held = self._held[:end], self._held[end:]
        return b"".join(self._through(part + b"\0") for part in whole.split(b"\0")[:-1])

    def close(self) -> None:
        self.port.close()

    def _through(self, data: bytes) -> bytes:
        if self.bytes:
            changed = bytearray(data)
            for i in range(len(changed)):
                if self._random.random() < self.bytes:
                    changed[i] = self._random.randrange(256)
                    self.accidents += 1
            data = bytes(changed)
        if len(data) < 2 or self._random.random() >= self.share:
            return data
        self.accidents += 1
        kind = self._random.choice(("damaged", "dropped", "doubled"))
        if kind == "dropped":
            return b""
        if kind == "doubled":
            return data + data
        index = self._random.randrange(len(data) - 1)
        return data[:index] + bytes([data[index] ^ 1 << self._random.randrange(8)]) + data[index + 1 :]
