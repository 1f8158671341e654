"""Rows of a test table that cover all pairs of independent parameters instead of all combinations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any


def pairwise(*parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Rows with one value of each parameter: each pair of values of two parameters is in one row at least.

    Greedy and deterministic: a row begins with the first missing pair, and every other parameter takes the value that
    adds the most missing pairs to it.
    """
    missing = {
        ((i, a), (j, b))
        for i, j in combinations(range(len(parameters)), 2)
        for a, b in product(range(len(parameters[i])), range(len(parameters[j])))
    }
    rows = []
    while missing:
        row = dict(min(missing))
        for k in (k for k in range(len(parameters)) if k not in row):
            gains = [
                sum(tuple(sorted(((k, v), cell))) in missing for cell in row.items())
                for v in range(len(parameters[k]))
            ]
            row[k] = gains.index(max(gains))
        missing -= set(combinations(sorted(row.items()), 2))
        rows.append(tuple(values[row[k]] for k, values in enumerate(parameters)))
    return rows
