"""The cores and core features that the board files of the tree declare. Stdlib only."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import BoardError
from . import installation
from .schema import near
from .toml_file import shown


def cores() -> frozenset[str]:
    """Values of `target.core`, which a new core adds by its file in `boards/arch`."""
    return frozenset(target["core"] for target in _targets() if "core" in target)


def features() -> frozenset[str]:
    """Values of `target.features`, for the `requires` and `when` of kernel tables."""
    return frozenset(feature for target in _targets() for feature in target.get("features", ()))


def check_known(target: Mapping[str, Any], path: Path) -> None:
    """Raise BoardError where a file outside the tree names a core or a feature that no file in the tree declares."""
    if path.is_relative_to(installation.boards()):
        return
    core = target.get("core")
    if core is not None and core not in cores():
        raise BoardError(f"{path}: target.core is not a known core{near(core, cores())}, got {shown(core)}")
    named = target.get("features", ())
    unknown = next((v for v in named if v not in features()), None)
    if unknown is not None:
        raise BoardError(
            f"{path}: target.features names {shown(unknown)}, which is no core feature{near(unknown, features())}, "
            f"got {shown(named)}"
        )


@cache
def _targets() -> tuple[dict[str, Any], ...]:
    files = sorted(installation.boards().rglob("*.toml"))
    return tuple(tomllib.loads(f.read_text(encoding="utf-8")).get("target", {}) for f in files)
