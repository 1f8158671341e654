"""One process at a time in a folder where firmware runs: no other program uses its flash.bin and inputs.bin."""

from __future__ import annotations

import fcntl
import os
import shlex
import sys
from pathlib import Path

from .errors import LinkError

NAME = ".board.lock"  # `.lock` belongs to a build by SCons, which may wait for the board


class FolderLock:
    """Held until `release`, or until the process ends. Raises LinkError, which names the process that holds it."""

    def __init__(self, folder: Path) -> None:
        self._file = (folder / NAME).open("a+", encoding="utf-8")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.seek(0)
            holder = self._file.read().strip() or "another process"
            self._file.close()
            raise LinkError(f"{folder} is in use by {holder}: wait until it ends, or stop it") from None
        self._file.truncate(0)
        self._file.write(f"process {os.getpid()} ({_command()})\n")
        self._file.flush()

    def release(self) -> None:
        """Let others have the folder."""
        if not self._file.closed:
            self._file.truncate(0)
            self._file.close()


def locked(folder: Path) -> FolderLock | None:
    """The lock of a folder; None if the folder cannot be written to, and so needs no lock."""
    try:
        return FolderLock(folder)
    except OSError:
        return None


def holder_of(path: str) -> str:
    """Which other process has a file or device open, in words; where /proc does not tell, "another process"."""
    target = os.path.realpath(path)
    for process in sorted(Path("/proc").glob("[0-9]*")):
        try:
            opened = any(os.path.realpath(fd) == target for fd in (process / "fd").iterdir())
            words = (process / "cmdline").read_text(errors="replace").split("\0") if opened else []
        except OSError:  # of another user, or it has ended
            continue
        if words:
            return f"process {process.name} ({_short(' '.join(words))})"
    return "another process"


def _command() -> str:
    """This process in words, as a user would type it."""
    first, *rest = sys.argv or ["python"]
    name = "autodiff-gen" if Path(first).name == "__main__.py" else Path(first).name
    return _short(shlex.join([name, *rest]))


def _short(words: str) -> str:
    line = " ".join(words.split())
    return line if len(line) <= 120 else f"{line[:117]}..."
