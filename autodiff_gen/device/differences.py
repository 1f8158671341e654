"""How a board sends the difference of a round (docs/link.md): all of it or the largest numbers, as floats or bytes."""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ShapeError
from . import frames, replies
from .errors import DeviceError, LinkError
from .link import Request

Array = NDArray[Any]
Vector = NDArray[np.float32]
F32, S8 = "f32", "s8"
ENCODINGS = {F32: 0, S8: 1}
_MOST = 0xFFFF  # elements of a piece, whose places have 16 bits


@dataclass(frozen=True)
class ClipAndNoise:
    """The L2 norm of a difference is at most `clip`, and each of its numbers gets normal noise of standard deviation
    `noise` * clip, which only the board knows."""

    clip: float
    noise: float = 0.0

    def __post_init__(self) -> None:
        clip, noise = (ctypes.c_float(x).value for x in (self.clip, self.noise))
        deviation = ctypes.c_float(clip * noise).value
        if not (
            0 < clip < math.inf and noise >= 0 and deviation < math.inf and (noise > 0) == (deviation > 0)
        ):
            raise ShapeError(
                f"clip={self.clip}, noise={self.noise}: expected finite numbers of float32, clip > 0 and noise >= 0, "
                "and a product that float32 holds"
            )


@dataclass(frozen=True)
class DifferencePart:
    """The part of a difference in one reply: `count` elements from `first` on, or only the `top` largest of them,
    unless `top` is 0."""

    first: int
    count: int
    top: int = 0

    @property
    def values(self) -> int:
        """How many numbers are sent."""
        return self.top or self.count


@dataclass(frozen=True)
class Encoding:
    """`values`: f32 or s8. `share`: the share of the numbers of each piece that is sent, the largest ones; 1: all."""

    values: str = F32
    share: float = 1.0

    @classmethod
    def of(cls, text: str) -> Encoding:
        """f32, s8, top0.1, top0.1:s8. Raises ShapeError."""
        top, colon, values = text.partition(":") if text.startswith("top") else ("", ":", text)
        values = values if colon else F32
        try:
            share = float(top.removeprefix("top")) if top else 1.0
        except ValueError:
            share = math.nan
        if values not in ENCODINGS or not 0.0 < share <= 1.0:
            raise ShapeError(
                f"differences as {text!r}: expected f32, s8, or the largest of them, such as a tenth as top0.1, or as "
                "bytes top0.1:s8"
            )
        return cls(values, share)

    @property
    def kind(self) -> int:
        """The number in a request."""
        return ENCODINGS[self.values]

    def size(self, piece: DifferencePart) -> int:
        """Bytes of a reply."""
        return 2 * piece.top + (4 * piece.values if self.values == F32 else 4 + piece.values)

    def pieces(self, elements: int, room: int) -> list[DifferencePart]:
        """All elements, in replies of at most `room` bytes."""
        most = room // 4 if self.values == F32 else room - 4
        if self.share < 1.0:
            entries = room // 6 if self.values == F32 else (room - 4) // 3
            most = min(int(entries / self.share), _MOST)
        firsts = range(0, elements, most)
        return [self._piece(first, min(most, elements - first)) for first in firsts]

    def _piece(self, first: int, count: int) -> DifferencePart:
        return DifferencePart(first, count, 0 if self.share == 1.0 else max(1, int(self.share * count + 0.5)))

    def request(self, number: int, piece: DifferencePart, seed: int) -> Request:
        """DELTA of round `number`."""
        payload = struct.pack("<IIHBI", number, piece.first, piece.count, self.kind, seed)
        return frames.DELTA, payload + (struct.pack("<H", piece.top) if piece.top else b"")

    def decoded(self, pieces: Sequence[DifferencePart], data: Array) -> Vector:
        """The elements of successive pieces, all alike except the last one. `data`: the bytes of their replies, uint8.
        Elements that were not sent are 0."""
        first, last = pieces[0], pieces[-1]
        rows, rest = np.split(data, [len(data) - self.size(last)])
        parts = (self._rows(first, rows.reshape(-1, self.size(first))), self._rows(last, rest[None]))
        return np.concatenate([part.reshape(-1) for part in parts])

    def _rows(self, piece: DifferencePart, rows: Array) -> Vector:
        """The elements of a piece in each row of bytes, float32[rows, elements]."""
        values: Any
        at = 2 * piece.top
        if self.values == F32:
            values = _viewed(rows[:, at:], "<f4")
        else:
            values = _viewed(rows[:, at : at + 4], "<f4") * rows[:, at + 4 :].view(np.int8)
        if not piece.top:
            return values  # type: ignore[no-any-return]
        found = np.zeros((len(rows), piece.count), np.float32)
        np.put_along_axis(found, _viewed(rows[:, :at], "<u2").astype(int), values, 1)
        return found

    def answer(self, piece: DifferencePart, answer: tuple[int, bytes]) -> Vector:
        """The elements in a reply to DELTA. Raises DeviceError, LinkError."""
        status, data = answer
        if status:
            raise DeviceError("DELTA", status)
        replies.check_length("DELTA", self.size(piece), data)
        places = np.frombuffer(data, "<u2", piece.top).astype(int)
        if (places >= piece.count).any() or (np.diff(places) <= 0).any():
            raise LinkError(
                "the board's reply to DELTA has places out of order: does another program use it?"
            )
        numbers = self.decoded([piece], np.frombuffer(data, np.uint8))
        if not np.isfinite(numbers).all():
            raise LinkError(
                "the board's reply to DELTA has numbers that are not finite: does another program use it?"
            )
        return numbers


def _viewed(rows: Array, dtype: str) -> Array:
    """Bytes in rows as numbers."""
    return np.ascontiguousarray(rows).view(dtype)
