"""Names of models that are built into one program. Stdlib only."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ToolError

ONE_MODEL = "serves one model; export and build take several"  # of the board link and what needs it


def check_different(names: Sequence[str]) -> None:
    """Raise ToolError if two models would have a file or a macro in common."""
    owners: dict[str, str] = {}
    for name in names:
        for made in (name, f"{name}_params"):
            other = owners.setdefault(made.lower(), name)
            if other is not name or names.count(name) > 1:
                raise ToolError(
                    f"two models in one program are called {other!r} and {name!r}, so that both would have a file "
                    f"{made}: give each a different name"
                )
