"""Files of random bytes: a board in an emulator reads one, and the noise of twins follows from one."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import DataError, ToolError

ENTROPY_FILE, ENTROPY_BYTES = "entropy.bin", 32  # as boards/support/common/system.c reads them


def draw_entropy(folder: Path) -> None:
    """Write new random bytes, which other users of the host cannot read: who knows them can subtract the noise. Raises
    ToolError."""
    path = folder / ENTROPY_FILE
    new = folder / f".{ENTROPY_FILE}.{os.getpid()}.new"
    try:
        new.unlink(missing_ok=True)
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(os.urandom(ENTROPY_BYTES))
        os.replace(new, path)
    except OSError as error:
        raise ToolError(f"cannot write to {path}: {error.strerror}") from None


def kept_entropy(folder: Path, fresh: bool) -> bytes:
    """The random bytes in a folder, drawn where they are missing. `fresh`: draw other ones. Raises DataError for a file
    of another length: a round that is repeated with other bytes would reveal more."""
    path = folder / ENTROPY_FILE
    if fresh or not os.path.lexists(path):
        draw_entropy(folder)
    try:
        found = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    if len(found) != ENTROPY_BYTES:
        raise DataError(
            f"{path}: has {len(found):,} bytes instead of {ENTROPY_BYTES}: remove it, and the noise is "
            "drawn anew"
        )
    return found
