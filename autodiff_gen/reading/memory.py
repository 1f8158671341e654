"""Limit the memory of this process while it reads a file: the last guard, after the limits of declared sizes."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from ..errors import AutodiffError
from .limits import OPTION, PROCESS


@contextlib.contextmanager
def limited_memory(name: str, error_type: type[AutodiffError], size: int = 0) -> Iterator[None]:
    """Raises an error of this kind if the block needs more memory than PROCESS allows for a file of this size. It sets
    a limit only on Linux."""
    try:
        with _limit(PROCESS.most(size)):
            yield
    except MemoryError:
        raise error_type(
            f"{name} needs more than {PROCESS.most(size):,} {PROCESS.what}; for a file that you trust, set the "
            f"environment variable {OPTION}=2, or more"
        ) from None


@contextlib.contextmanager
def _limit(more: int) -> Iterator[None]:
    """At most `more` bytes in addition to the memory that the process has."""
    if not sys.platform.startswith("linux"):
        yield
        return
    import resource

    before = resource.getrlimit(resource.RLIMIT_DATA)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5])
    wanted = pages * resource.getpagesize() + more
    limits = [n for n in (wanted, *before) if n != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(limits), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)
