"""The seeds of the noise of twins: random bytes for each board and round, as a board draws them at the start of a
round. The twin makes the noise from the seed, the settings and the exact difference, as a board does (docs/link.md): a
request that is repeated has the same noise, also in another process, and another difference has other noise."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from pathlib import Path

from .entropy import kept_entropy

NoiseSeeds = Callable[[int, int], bytes]  # by board and round; each has ENTROPY_BYTES


def noise_seeds(secret: bytes) -> NoiseSeeds:
    """Seeds that follow from random bytes."""
    return lambda board, round: hashlib.sha256(secret + struct.pack("<II", board, round)).digest()


def seeds_in(folder: Path, fresh: bool) -> NoiseSeeds:
    """Seeds that follow from random bytes in a file of `folder`, which is written if it is missing. `fresh`: replace
    the random bytes. Raises DataError, ToolError."""
    return noise_seeds(kept_entropy(folder, fresh))
