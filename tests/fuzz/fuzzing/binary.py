"""Mutations of binary files with checksums, which are made right again."""

from __future__ import annotations

import random
import struct
import zlib

from . import texts


def checksummed(data: bytes, rng: random.Random) -> bytes:
    """Other numbers in the file; its checksums are made right in most cases."""
    if rng.random() < 0.3:
        return texts.damaged(data, rng)
    made = bytearray(data)
    sums = _checksums(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        head = rng.random() < 0.6
        at = 4 * rng.randrange(max(min(len(made), 128 if head else len(made)) // 4, 1))
        number = rng.choice(
            (0, 1, 2, 255, 65536, 2**31 - 1, 2**31, 2**32 - 1, 0x7FC00000, 0x7F800000, rng.getrandbits(32))
        )
        if at + 4 <= len(made):
            struct.pack_into("<I", made, at, number)
    if rng.random() < 0.2:
        made = made[: rng.randrange(len(made) + 1)]
    for place, begin, end in sums if rng.random() < 0.9 else ():
        if end <= len(made) and place + 4 <= len(made):
            struct.pack_into("<I", made, place, zlib.crc32(made[begin:end]))
    return bytes(made)


def _checksums(data: bytes) -> list[tuple[int, int, int]]:
    """(place, begin, end) of CRC-32s in a file, over the bytes before or after them; inner ones first."""
    found = []
    places = [*range(0, min(len(data) - 3, 256), 4), len(data) - 4]
    for place in places:
        value = struct.unpack_from("<I", data, place)[0]
        for begin, end in [(b, place) for b in range(0, min(place, 128), 4)] + [
            (b, len(data)) for b in range(place + 4, min(place + 64, len(data)), 4)
        ]:
            if value and zlib.crc32(data[begin:end]) == value:
                found.append((place, begin, end))
    return sorted(found, key=lambda s: (s[1] <= s[0], s[0]))
