"""A test of one row, run for groups of rows: an item of pytest costs more than most rows do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

SIZE = 16


def in_groups(rows: list[Any], name: Callable[[Any], str] = lambda row: str(row[0]), size: int = SIZE) -> Any:
    """Parametrizes a test by `rows`, a list of rows each time."""
    groups = [rows[k : k + size] for k in range(0, len(rows), size)]
    ids = [name(g[0]) if len(g) == 1 else f"{name(g[0])}-{name(g[-1])}" for g in groups]
    return pytest.mark.parametrize("rows", groups, ids=ids)


def by_first(rows: Iterable[Any]) -> Any:
    """Parametrizes a test by the rows that begin with the same name, a list of rows each time."""
    groups: dict[str, list[Any]] = {}
    for row in rows:
        groups.setdefault(row[0], []).append(row)
    return pytest.mark.parametrize("rows", groups.values(), ids=groups)


def each_row(test: Callable[[Any], None]) -> Callable[[list[Any]], None]:
    """The test for a list of rows. All of them are run; each failure says its row."""

    def run(rows: list[Any]) -> None:
        failures = []
        for row in rows:
            try:
                test(row)
            except Exception as error:
                error.add_note(f"row: {row}")
                failures.append(error)
        if failures:
            raise ExceptionGroup(f"{len(failures)} of {len(rows)} rows", failures)

    run.__name__, run.__doc__, run.__module__ = test.__name__, test.__doc__, test.__module__
    return run
