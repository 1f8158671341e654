"""Mutations of zip archives: of the JSON, arrays and pickles in entries, of names, of the archive's declarations."""

from __future__ import annotations

import functools
import io
import pickle
import random
import struct
import zipfile
import zlib
from dataclasses import dataclass

import numpy as np

from . import hostile, texts
from .process import CANARY

_LOCAL = struct.Struct("<IHHHHHIIIHH")
_CENTRAL = struct.Struct("<IHHHHHHIIIHHHHHII")
_END = struct.Struct("<IHHHHIIH")
_BLOCK = 16 << 20


@dataclass
class Entry:
    """An entry of an archive as it will be written; size and crc are those that the archive declares."""

    name: bytes
    data: bytes  # as stored
    size: int
    crc: int
    method: int = 0
    flags: int = 0x800

    @classmethod
    def of(cls, name: bytes, data: bytes) -> Entry:
        return cls(name, data, len(data), zlib.crc32(data))


def entries(data: bytes) -> list[Entry]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [Entry.of(i.filename.encode(), archive.read(i)) for i in archive.infolist()]


def packed(parts: list[Entry]) -> bytes:
    """The archive of entries."""
    body, table = b"", b""
    for e in parts:
        size, at = e.size & 0xFFFFFFFF, len(body)
        common = (20, e.flags, e.method, 0, 33, e.crc, len(e.data), size, len(e.name))
        body += _LOCAL.pack(0x04034B50, *common, 0) + e.name + e.data
        table += _CENTRAL.pack(0x02014B50, 20, *common, 0, 0, 0, 0, 0, at) + e.name
    end = _END.pack(0x06054B50, 0, 0, len(parts) & 0xFFFF, len(parts) & 0xFFFF, len(table), len(body), 0)
    return body + table + end


@functools.cache
def _zeros() -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(bytes(_BLOCK)) + packer.flush(zlib.Z_FULL_FLUSH)


def bomb(name: bytes, blocks: int, declared: int) -> Entry:
    """An entry of zeros, 1,000 times as large as its bytes."""
    end = zlib.compressobj(9, zlib.DEFLATED, -15).flush()
    return Entry(name, _zeros() * blocks + end, declared, 0, method=8)


def archive(data: bytes, rng: random.Random) -> bytes:
    """An archive with changed entries."""
    if rng.random() < 0.1:
        return texts.damaged(data, rng)
    parts = entries(data)
    for _ in range(rng.choice((1, 1, 1, 2))):
        at = rng.randrange(len(parts))
        kind = rng.randrange(16)
        if kind <= 9:  # JSON twice as often as weights
            json_entries = [k for k, e in enumerate(parts) if e.data[:1] in (b"{", b"[")]
            at = rng.choice(json_entries) if json_entries and rng.random() < 0.8 else at
            parts[at] = Entry.of(parts[at].name, content(parts[at].data, rng))
        elif kind == 10:
            parts[at].name = hostile.string(rng, parts[at].name.decode()).encode("utf-8", "replace")[:60_000]
        elif kind == 11:
            parts.insert(rng.randrange(len(parts) + 1), parts[at])
        elif kind == 12 and len(parts) > 1:
            del parts[at]
        elif kind == 13:
            other = rng.randrange(len(parts))
            parts[at], parts[other] = (
                Entry.of(parts[at].name, parts[other].data),
                Entry.of(parts[other].name, parts[at].data),
            )
        elif kind == 14:
            e = parts[at]
            field = rng.choice(("size", "crc", "method", "flags"))
            most = {"size": 2**32 - 1, "crc": 2**32 - 1}.get(field, 2**16 - 1)
            setattr(
                e,
                field,
                rng.choice((0, 1, 8, 9, 12, 14, 93, 99, most, e.size + 1, max(e.size - 1, 0))) & most,
            )
        else:
            blocks = rng.choice((2, 40, 160))
            parts[at] = bomb(parts[at].name, blocks, rng.choice((blocks * _BLOCK, 100, 2**32 - 1)))
    return packed(parts)


def content(data: bytes, rng: random.Random) -> bytes:
    """The changed content of an entry."""
    if data[:1] in (b"{", b"["):
        return texts.json_text(data, rng)
    if data[:6] == b"\x93NUMPY":
        return array(data, rng)
    if (
        data[:4] == b"PK\3\4" and rng.random() < 0.9
    ):  # an archive of torch.save inside an archive of torch.export.save
        return archive(data, rng)
    if data[:1] == b"\x80" and rng.random() < 0.3:
        return _pickle(rng)
    return texts.damaged(data, rng)


def array(data: bytes, rng: random.Random) -> bytes:
    """A .npy file with another header, other elements or another type; text in it is changed as JSON."""
    kind = rng.randrange(5)
    if kind == 0:
        return texts.damaged(data, rng)
    try:
        read = np.load(io.BytesIO(data))
    except Exception:  # changed before; errors of NumPy are of many kinds
        return texts.damaged(data, rng)
    if read.dtype.kind == "U" and not read.shape and kind < 4:
        return saved(np.array(texts.json_text(str(read).encode(), rng).decode("utf-8", "replace")))
    if kind == 1:
        return saved(_elements(read, rng))
    size = struct.unpack_from("<H", data, 8)[0]
    head, body = data[10 : 10 + size], data[10 + size :]
    new = texts.words(head, rng) if rng.random() < 0.5 else _header(head, rng)
    length = len(new) if rng.random() < 0.9 else rng.choice((0, 65535, len(head)))
    return (
        data[:6]
        + rng.choice((b"\1\0", b"\1\0", b"\1\0", b"\2\0", b"\3\0", b"\xff\xff"))
        + struct.pack("<H", min(length, 65535))
        + new
        + body
    )


def _header(head: bytes, rng: random.Random) -> bytes:
    """A header that says another type or shape."""
    descr = rng.choice(
        (
            "'<f4'",
            "'>f4'",
            "'<f8'",
            "'|O'",
            "'<i8'",
            "'|V1000000000'",
            "'<U1000'",
            "'|b1'",
            "'<c8'",
            "'M8[s]'",
            "'<f2'",
            "[('a', '<f4')]",
            "'|S0'",
            "1",
        )
    )
    shape = rng.choice(
        (
            "()",
            "(3,)",
            "(-1,)",
            "(2**40,)",
            "(1099511627776,)",
            "(4294967296, 4294967296)",
            "(0, 4611686018427387904)",
            "(1,)*40",
            "3",
            "(True,)",
            "(1.0,)",
            "None",
        )
    )
    order = rng.choice(("False", "True", "None", "1"))
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"
    return text.encode().ljust(len(head) - 1) + b"\n"


def _elements(read: np.ndarray, rng: random.Random) -> np.ndarray:
    """Another array: with special numbers, or of another type or shape."""
    with np.errstate(all="ignore"):
        kind = rng.randrange(5)
        if kind == 0 and read.size and read.dtype.kind in "fi":
            changed = read.astype(rng.choice((np.float32, np.float64)))
            changed.flat[rng.randrange(read.size)] = rng.choice(hostile.FLOATS)
            return changed
        if kind == 1 and read.dtype.kind in "fiub":
            return read.astype(rng.choice(("f2", "f8", "i1", "i8", "u1", "c8", "?", ">f4", "S3", "U5")))
        if kind == 2:
            return read.reshape(-1)
        if kind == 3:
            return read[..., None]
        return rng.choice(
            (np.zeros(0), np.zeros((0, 3)), np.float32(3), np.array("x"), np.zeros((1,) * 30), np.ones(5))
        )


def saved(value: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, value, allow_pickle=False)
    return file.getvalue()


class _Hostile:
    def __init__(self, *call: object) -> None:
        self.call = call

    def __reduce__(self) -> tuple[object, ...]:
        return self.call[0], tuple(self.call[1:])


def _pickle(rng: random.Random) -> bytes:
    """A pickle that runs code."""
    import os

    call = rng.choice(
        (
            (os.system, f"touch {CANARY}"),
            (eval, hostile.CODE),
            (__import__, CANARY),
            (os.remove, "victim"),
            (open, CANARY, "w"),
        )
    )
    return pickle.dumps({"weight": _Hostile(*call)}, protocol=2)
