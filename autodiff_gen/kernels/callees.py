"""The files that a kernel's source includes and the kernels that it calls, which a program needs in addition."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from .table import Kernel

_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
_SYMBOL = re.compile(r"\bAG_SYMBOL\((\w+)\)|\b(ag_\w+)")  # a name in the file's backend, or a whole symbol


def included(root: Path, folder: Path, sources: Sequence[Path]) -> dict[str, Path]:
    """Name in `#include "..."` -> file, for the files that sources include, directly or through other files. A name
    with a slash is relative to `root`; other names are in the backend's `folder`. Files that are in neither are left
    out."""
    found: dict[str, Path] = {}
    pending = list(sources)
    while pending:
        for name in _INCLUDE.findall(pending.pop().read_text(encoding="utf-8")):
            path = root / name if "/" in name else folder / name
            if ".." in path.parts or os.path.isabs(name):
                continue
            if path.is_file() and name not in found:
                found[name] = path
                pending.append(path)
    return found


@cache
def _named(root: Path, folder: Path, source: Path) -> frozenset[tuple[str, str]]:
    """The names of functions in a source and in the files that it includes. ag_kernels.h, which declares all kernels,
    is not among them, because it is in no backend's folder."""
    files = {source, *included(root, folder, [source]).values()}
    return frozenset(found for path in files for found in _SYMBOL.findall(path.read_text(encoding="utf-8")))


def with_callees(called: Iterable[Kernel], known: Mapping[str, tuple[Kernel, Path]], root: Path) -> set[str]:
    """The symbols of kernels and of the kernels that they call. known: symbol -> kernel, and folder of its backend.

    conv2d of a backend calls its gemv:    {conv2d}    ->    {conv2d, gemv}
    """
    found: set[str] = set()
    pending = [k.symbol for k in called]
    while pending:
        symbol = pending.pop()
        if symbol in found or symbol not in known:
            continue
        found.add(symbol)
        kernel, folder = known[symbol]
        named = _named(root, folder, kernel.source)
        pending += [whole or f"ag_{name}_{kernel.backend}" for name, whole in named]
    return found
