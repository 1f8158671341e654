"""Frames of the link: header, payload and CRC-32, COBS-encoded so that only the last byte is 0 (docs/link.md)."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

VERSION = 3
PAYLOAD = 240  # bytes, the most of any board; a board's own limit is in its reply to HELLO
HEADER = struct.Struct("<BbHI")
LONGEST = HEADER.size + PAYLOAD + 4

HELLO, READ, WRITE, SUM, TRAIN, PREDICT, SET_LR, INIT, BEGIN, END, SAVE, LOAD, FETCH = range(1, 14)
ROUND, LOCAL, DELTA, EVALUATE, IDENTITY, WEAR = range(14, 20)  # of federated training
ACCUMULATE, APPLY = 21, 22  # of synchronous training
REPLY, NAK = 0x80, 0xFF
INPUT, OUTPUT, STATE, COUNTERS = range(4)
RAW, UNIT, RUNS, S8, S16 = range(5)
LOAD_OWN, LOAD_ANY = range(2)  # checkpoints: of the board's program, of any with the same states
NAMES = {
    HELLO: "HELLO",
    READ: "READ",
    WRITE: "WRITE",
    SUM: "SUM",
    TRAIN: "TRAIN",
    PREDICT: "PREDICT",
    SET_LR: "SET_LR",
    INIT: "INIT",
    BEGIN: "BEGIN",
    END: "END",
    SAVE: "SAVE",
    LOAD: "LOAD",
    FETCH: "FETCH",
    ROUND: "ROUND",
    LOCAL: "LOCAL",
    DELTA: "DELTA",
    EVALUATE: "EVALUATE",
    IDENTITY: "IDENTITY",
    WEAR: "WEAR",
    ACCUMULATE: "ACCUMULATE",
    APPLY: "APPLY",
}


@dataclass(frozen=True)
class Frame:
    """A request, or a reply, which has REPLY added to the request's number."""

    request: int
    status: int
    session: int
    sequence: int
    payload: bytes = b""

    def encode(self) -> bytes:
        """The encoded frame, including the terminating 0."""
        body = HEADER.pack(self.request, self.status, self.session, self.sequence) + self.payload
        return stuff(body + struct.pack("<I", zlib.crc32(body))) + b"\0"

    @property
    def line_bytes(self) -> int:
        """Bytes of the encoded frame."""
        return HEADER.size + len(self.payload) + 6


def stuff(data: bytes) -> bytes:
    """Consistent overhead byte stuffing (COBS) of at most 253 bytes: the result contains no 0."""
    return b"".join(bytes([len(run) + 1]) + run for run in data.split(b"\0"))


def unstuff(data: bytes) -> bytes | None:
    """Decode COBS; None if the data are no valid encoding."""
    runs = []
    position = 0
    while position < len(data):
        code = data[position]
        run = data[position + 1 : position + code]
        if code == 0 or len(run) != code - 1:
            return None
        runs.append(run)
        position += code
    return b"\0".join(runs) if runs else None


def decode(data: bytes) -> Frame | None:
    """The frame in the bytes between two zeros; None if they are no frame or the CRC is wrong."""
    body = unstuff(data)
    if body is None or not HEADER.size + 4 <= len(body) <= LONGEST:
        return None
    if zlib.crc32(body[:-4]) != struct.unpack("<I", body[-4:])[0]:
        return None
    request, status, session, sequence = HEADER.unpack_from(body)
    return Frame(request, status, session, sequence, body[HEADER.size : -4])


class Decoder:
    """Split a byte stream, received in arbitrary pieces, into frames; invalid ones are counted and dropped."""

    def __init__(self) -> None:
        self._held = bytearray()
        self.damaged = 0

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that end in `data`."""
        complete = []
        parts = data.split(b"\0")
        for k, part in enumerate(parts):
            if len(self._held) <= 2 * LONGEST:  # a longer run cannot be a frame
                self._held += part
            if k == len(parts) - 1:
                break
            held = bytes(self._held)
            self._held.clear()
            frame = decode(held) if held else None
            if frame is not None:
                complete.append(frame)
            elif held:
                self.damaged += 1
        return complete
