"""Check that the libraries which backends link are installed. Standard library only."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence

from ..errors import ToolError
from ..targets.toolchain import passes
from .registry import Backends


def check_libraries(tables: Backends, compiler: Sequence[str]) -> None:
    """Raise ToolError, with the command that installs it, if a library that a backend links is missing."""
    for b in tables.backends:
        headers = (word for header in b.headers for word in ("-include", header))
        probe = (
            *compiler,
            "-shared",
            *headers,
            "-x",
            "c",
            os.devnull,
            "-x",
            "none",
            *b.ldflags,
            "-o",
            os.devnull,
        )
        if (b.headers or b.ldflags) and not _passes(probe):
            raise ToolError(
                f"kernel backend {b.name!r} needs {' '.join((*b.headers, *b.ldflags))}, which is not installed; run: "
                f"sudo apt-get install -y --no-install-recommends {' '.join(b.packages)}"
            )


@functools.cache
def _passes(probe: tuple[str, ...]) -> bool:
    return passes(probe)
