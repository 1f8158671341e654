"""samples.bin: the records that a firmware streams. runtime/ag_samples.h describes the format."""

from __future__ import annotations

import math
import os
import struct
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..reading.limits import MEMORY
from ..reading.regular import read_bytes

MAGIC = b"AGS1"
VERSION = 1
HEADER = struct.Struct("<4s11I")
SCALE = struct.Struct(
    "<fi"
)  # before the header's checksum, where bytes stand for other numbers than byte / 255
LARGEST_ZERO = 1 << 23
MOST_EPOCHS = 65535


@dataclass(frozen=True)
class SampleSet:
    """Records uint8[train + test, record_bytes]: input, then label; the training set comes first. Bytes in place of
    floats stand for (byte - zero) / divisor."""

    records: NDArray[np.uint8]
    input_bytes: int
    label_bytes: int
    train: int
    epochs: int
    divisor: float = 255.0
    zero: int = 0

    @property
    def test(self) -> int:
        return len(self.records) - self.train

    @property
    def train_crc(self) -> int:
        """CRC-32 of the training records in order, which a board logs for each epoch."""
        return zlib.crc32(self.records[: self.train].tobytes())

    def to_bytes(self) -> bytes:
        """The file's contents."""
        body = np.ascontiguousarray(self.records).tobytes()
        if not 0 <= self.epochs <= MOST_EPOCHS or self.epochs * self.train >= 1 << 32:
            raise DataError(
                f"{self.epochs} epochs of {self.train} samples: samples.bin has at most {MOST_EPOCHS} epochs, and "
                "2^32 - 1 steps"
            )
        scale = b"" if (self.divisor, self.zero) == (255.0, 0) else SCALE.pack(self.divisor, self.zero)
        size = HEADER.size + len(scale)
        counts = (VERSION, size, self.records.shape[1], self.input_bytes, self.label_bytes)
        head = (
            HEADER.pack(MAGIC, *counts, self.train, self.test, self.epochs, 0, zlib.crc32(body), 0)[:-4]
            + scale
        )
        return head + struct.pack("<I", zlib.crc32(head)) + body


def from_arrays(
    images: NDArray[np.uint8],
    labels: NDArray[np.uint8],
    *,
    train: int,
    epochs: int,
    divisor: float = 255.0,
    zero: int = 0,
) -> SampleSet:
    """Records of byte images uint8[n, ...] and labels uint8[n]; the first `train` are the training set. The numbers of
    an image are (byte - zero) / divisor."""
    flat = images.reshape(len(images), -1)
    return SampleSet(
        np.concatenate([flat, labels[:, None]], axis=1), flat.shape[1], 1, train, epochs, divisor, zero
    )


def read(path: Path) -> SampleSet:
    """Read and check a file. Raises DataError."""
    data = read_bytes(path, DataError, MEMORY)
    if len(data) < HEADER.size or data[:4] != MAGIC:
        raise DataError(f"{path}: not a sample set: does not start with {MAGIC.decode()}")
    _, version, header, record, inputs, label, train, test, epochs, _, crc, _ = HEADER.unpack_from(data)
    sizes = (HEADER.size, HEADER.size + SCALE.size)
    own = zlib.crc32(data[: max(header, 4) - 4])
    if version != VERSION or header not in sizes or data[header - 4 : header] != struct.pack("<I", own):
        raise DataError(f"{path}: the header is damaged or of another version: write the file again")
    divisor, zero = SCALE.unpack_from(data, HEADER.size - 4) if header > HEADER.size else (255.0, 0)
    if not 0 < divisor < math.inf or abs(zero) > LARGEST_ZERO:
        raise DataError(
            f"{path}: bytes stand for (byte - {zero}) / {divisor:g}, which is no number: write the file again"
        )
    if record == 0 or inputs + label != record or train + test == 0:
        raise DataError(
            f"{path}: {train:,} + {test:,} records of {record:,} bytes, {inputs:,} of the input and {label:,} of the "
            "label: write the file again"
        )
    if epochs > MOST_EPOCHS or epochs * train >= 1 << 32:
        raise DataError(
            f"{path}: {epochs:,} epochs of {train:,} samples, more than firmware counts: write the file again"
        )
    body = data[header:]
    if len(body) != record * (train + test) or zlib.crc32(body) != crc:
        raise DataError(f"{path}: truncated or damaged: write the file again")
    records = np.frombuffer(body, np.uint8).reshape(train + test, record)
    return SampleSet(records, inputs, label, train, epochs, divisor, zero)


def sample_count(data: bytes) -> int:
    """The training records of a file with these contents, unchecked."""
    return int(HEADER.unpack_from(data)[6])


def write(path: Path, data: bytes) -> None:
    """Write a file atomically: to a temporary file, then rename it. Raises DataError."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def to_c(samples: SampleSet) -> str:
    """A C file that stores the set in flash, for boards without access to files (runtime/ag_samples.h)."""
    data = samples.to_bytes()
    rows = (", ".join(f"{b}" for b in data[i : i + 24]) for i in range(0, len(data), 24))
    body = ",\n    ".join(rows)
    return (
        f'/* {samples.train} records to train on, {samples.test} to test on. */\n#include "ag_samples.h"\n\n'
        f"const uint32_t ag_samples_in_flash_bytes = {len(data)}u;\n"
        f"const uint8_t ag_samples_in_flash[{len(data)}] = {{\n    {body},\n}};\n"
    )
