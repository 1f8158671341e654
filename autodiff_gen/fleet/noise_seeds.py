"""What seeds the noise of twins: random bytes for each board and round. A round that is repeated has the same noise, as
on boards, also in another process."""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Callable
from pathlib import Path

from ..owned_files import write_file
from .emulated import ENTROPY_BYTES, ENTROPY_FILE

NoiseSeeds = Callable[[int, int], bytes]  # by board and round; each has ENTROPY_BYTES


def noise_seeds(secret: bytes) -> NoiseSeeds:
    """Seeds that follow from random bytes."""
    return lambda board, round: hashlib.sha256(secret + struct.pack("<II", board, round)).digest()


def seeds_in(folder: Path, fresh: bool) -> NoiseSeeds:
    """Seeds that follow from random bytes in a file of `folder`, which is written if it is missing. `fresh`: replace
    the random bytes."""
    path = folder / ENTROPY_FILE
    if fresh or not path.is_file() or path.stat().st_size != ENTROPY_BYTES:
        write_file(path, os.urandom(ENTROPY_BYTES), force=True)
    return noise_seeds(path.read_bytes())
