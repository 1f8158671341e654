"""Arrays as bytes on the link. Floats are compressed: image pixels are bytes divided by 255, and most of them are 0."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.link_layout import LinkArray
from ..errors import DataError
from ..ir.types import bound
from .frames import RUNS, UNIT


def as_units(array: NDArray[Any]) -> bytes | None:
    """Bytes b with b / 255 = x in float32, bit for bit, for every x; None if some x has none."""
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = np.rint(array * np.float32(255))
        if not ((scaled >= 0) & (scaled <= 255)).all():  # also False for NaN
            return None
    units = scaled.astype(np.uint8)
    same = (units.astype(np.float32) / np.float32(255)).view(np.uint32) == array.view(np.uint32)
    return units.tobytes() if same.all() else None


def in_runs(data: bytes, room: int) -> Iterator[tuple[int, int, bytes]]:
    """(encoding, index of the first float, bytes of a WRITE) that cover `data`; each at most `room` bytes."""
    position = 0
    while position < len(data):
        packed, floats = _runs(data, position, room)
        if floats > min(room, len(data) - position):
            yield RUNS, position, packed
            position += floats
        else:
            yield UNIT, position, data[position : position + room]
            position += room


def _runs(data: bytes, start: int, room: int) -> tuple[bytes, int]:
    """Run-length encode data[start:] as (zeros, count, count bytes)..., as far as `room` allows, and the number of
    encoded floats. Single zeros are stored as bytes."""
    out = bytearray()
    position = start
    while position < len(data) and room - len(out) > 2:
        zeros = 0
        while position + zeros < len(data) and zeros < 255 and data[position + zeros] == 0:
            zeros += 1
        begin = end = position + zeros
        limit = min(len(data), begin + min(255, room - len(out) - 2))
        while end < limit and data[end : end + 3] != bytes(min(3, len(data) - end)):
            end += 1
        out += bytes((zeros, end - begin)) + data[begin:end]
        position = end
    return bytes(out), position - start


def from_bytes(a: LinkArray, data: bytes, n: int) -> NDArray[Any]:
    """The array of n rows stored in `data`. Raises DataError."""
    if len(data) != a.bytes(n):
        raise DataError(f"{a.name}: expected {a.bytes(n)} bytes, got {len(data)}")
    return np.frombuffer(data, a.type.dtype.numpy).reshape(bound(a.type.shape, n)).copy()
