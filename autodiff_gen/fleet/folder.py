"""The folder of a run's results, which one command has to itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
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


def numbered(folder: Path, name: Callable[[int], str]) -> dict[int, Path]:
    """The files `name(k)` in the folder by k; files with other names are the user's."""
    found = {}
    for path in folder.iterdir():
        digits = re.search(r"\d{1,18}", path.name, re.ASCII)
        if digits is not None and name(int(digits[0])) == path.name and path.is_file():
            found[int(digits[0])] = path
    return found


def last_of(folder: Path, name: Callable[[int], str], fresh: bool) -> int:
    """The largest number of such a file, 0 without one. `fresh`: all of them are removed. Raises DataError."""
    if not fresh:
        return max(numbered(folder, name), default=0)
    remove(folder, name)
    return 0


def remove(folder: Path, name: Callable[[int], str], but: Collection[int] = ()) -> None:
    """Remove such files, except those with these numbers. Raises DataError."""
    for k, path in numbered(folder, name).items():
        if k in but:
            continue
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise DataError(f"{path}: cannot be removed: {error.strerror}") from None
