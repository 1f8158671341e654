"""The folder of a run's results, which one command uses at a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from ..device.lock import locked
from ..errors import DataError


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Make the folder, and hold its lock. Raises DataError where the folder cannot be made, LinkError where another
    process holds the lock."""
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


def numbered(folder: Path, name: Callable[[int], str]) -> dict[int, Path]:
    """The files `name(k)` in the folder, by k. Files with other names belong to the user."""
    found = {}
    for path in folder.iterdir():
        digits = re.search(r"\d{1,18}", path.name, re.ASCII)
        if digits is not None and name(int(digits[0])) == path.name and path.is_file():
            found[int(digits[0])] = path
    return found


def last_of(folder: Path, name: Callable[[int], str], fresh: bool) -> int:
    """The largest k of the files `name(k)`, 0 without a file. `fresh`: remove the files first. Raises DataError."""
    if not fresh:
        return max(numbered(folder, name), default=0)
    remove(folder, name)
    return 0


def remove(folder: Path, name: Callable[[int], str], but: Collection[int] = ()) -> None:
    """Remove the files `name(k)`, except the numbers `but`. Raises DataError."""
    for k, path in numbered(folder, name).items():
        if k in but:
            continue
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise DataError(f"{path}: cannot be removed: {error.strerror}") from None
