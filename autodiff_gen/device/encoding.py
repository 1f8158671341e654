"""Arrays as bytes on the link. Floats are compressed: image pixels are bytes divided by 255, and most of them are 0;
samples of sensors are integers times a scale."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.board_link_layout import LinkArray
from ..errors import DataError
from ..ir.types import bound
from .frames import RAW, RUNS, S8, S16, UNIT

Piece = tuple[int, int, bytes]  # of a WRITE: encoding, offset in bytes as stored, data


def as_units(array: NDArray[Any]) -> bytes | None:
    """Bytes b with b / 255 = x in float32, bit for bit, for every x; None if some x has none."""
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = np.rint(array * np.float32(255))
        if not ((scaled >= 0) & (scaled <= 255)).all():  # also False for NaN
            return None
    units = scaled.astype(np.uint8)
    same = (units.astype(np.float32) / np.float32(255)).view(np.uint32) == array.view(np.uint32)
    return units.tobytes() if same.all() else None


def as_integers(array: NDArray[Any], scale: float | None = None) -> tuple[int, float, bytes] | None:
    """(S8 or S16, scale, bytes of integers k) with k * scale = x in float32, bit for bit, for every x; None if there
    are none. Without a `scale`, powers of 2 are tried, which suit values that were measured in integers or fixed
    point."""
    largest = float(np.abs(array).max()) if array.size else 0.0
    if not 0.0 < largest < float("inf"):
        return None
    mantissa, power = np.frexp(largest)
    powers = (
        (power - 1, power) if mantissa == 0.5 else (power,)
    )  # -2^k and 2^k do not have the same number of bits
    for encoding, dtype in ((S8, np.int8), (S16, np.int16)):
        limit = np.iinfo(dtype)
        units = [2.0 ** (int(p) - limit.bits + 1) for p in powers] if scale is None else [scale]
        for unit in map(np.float32, units):
            if unit == 0.0:
                continue
            k = np.rint(array / np.float64(unit))
            if (k < limit.min).any() or (k > limit.max).any():
                continue
            integers = k.astype(dtype)
            if ((integers.astype(np.float32) * unit).view(np.uint32) == array.view(np.uint32)).all():
                return encoding, float(unit), integers.tobytes()
    return None


def shortest(array: NDArray[Any], room: int, scale: float | None) -> Iterator[Piece]:
    """The pieces of a float array in the shortest encoding that reproduces it bit for bit. `scale`: the scale that
    `as_integers` returned."""
    if (units := as_units(array)) is not None:
        return ((encoding, 4 * first, data) for encoding, first, data in in_runs(units, room))
    if (integers := as_integers(array, scale)) is not None:
        encoding, unit, data = integers
        size = 1 if encoding == S8 else 2
        step = (room - 4) // size * size
        head = struct.pack("<f", unit)
        return ((encoding, 4 * at // size, head + data[at : at + step]) for at in range(0, len(data), step))
    return raw_pieces(array.tobytes(), room)


def raw_pieces(data: bytes, room: int) -> Iterator[Piece]:
    """Pieces of at most `room` bytes as they are."""
    return ((RAW, at, data[at : at + room]) for at in range(0, len(data), room))


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
    encoded floats. Fewer than three zeros between other bytes are stored as bytes."""
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
