"""The folder of a run's results, which one command has to itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..device.lock import locked
from ..errors import DataError


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Make the folder, and hold its lock. Raises DataError where it cannot be made, LinkError where it is held."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"--out {folder}: cannot be made: {error.strerror}") from None
    lock = locked(folder)
    try:
        yield
    finally:
        if lock is not None:
            lock.release()
