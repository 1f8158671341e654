"""The losses that a program prints, as bars of text: what `run` shows after the program."""

from __future__ import annotations

import re
from itertools import takewhile

ROWS = 12  # at most; more rows of a table are thinned evenly
WIDTH = 40  # characters of the largest loss


def loss_curve(text: str) -> str | None:
    """Bars for the first table whose head has a column that ends in `loss`; None if no table has two rows.

    epoch    mean loss         mean loss by epoch
        1     1.099781    ->       1  1.099781  ########################################
        2     0.434679             2  0.434679  ################
    """
    lines = text.splitlines()
    for k, line in enumerate(lines):
        head = re.split(r" {2,}", line.strip())
        column = next((i for i, name in enumerate(head) if name.endswith("loss")), 0)
        if not column:
            continue
        rows = [words.split() for words in takewhile(str.strip, lines[k + 1 :])]
        points = [(row[0], float(row[column])) for row in rows if _is_row(row, column)]
        if len(points) > 1:
            return _bars(f"{head[column]} by {head[0]}", _thinned(points))
    return None


def _is_row(words: list[str], column: int) -> bool:
    """Whether a line has numbers in the first and in this column."""
    number = r"-?\d[\d,]*(\.\d+)?(e[-+]?\d+)?"
    return len(words) > column and all(re.fullmatch(number, words[i]) for i in (0, column))


def _thinned(points: list[tuple[str, float]]) -> list[tuple[str, float]]:
    """The first and the last, and as many between them as there is room for."""
    count = min(len(points), ROWS)
    return [points[i * (len(points) - 1) // (count - 1)] for i in range(count)]


def _bars(title: str, points: list[tuple[str, float]]) -> str:
    largest = max((loss for _, loss in points), default=0.0)
    wide, lines = max(len(name) for name, _ in points), [title]
    for name, loss in points:
        bar = "#" * max(0, round(WIDTH * loss / largest)) if largest > 0 else ""
        lines.append(f"  {name:>{wide}}  {loss:.6f}  {bar}".rstrip())
    return "\n".join(lines)
