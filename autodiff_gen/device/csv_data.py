"""Data sets of CSV files: a table with a row for each sample, or a folder of recordings for each class.

A table may have a header; a cell is a number, a class may be a word. `--columns x=ax,ay,az;label=activity` names the
columns of each array. Without it a column with the name of an array is that array, the others belong to the inputs,
then the targets, in the model's order.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.link_layout import LinkArray, LinkLayout
from ..errors import DataError
from ..ir.types import bound
from .errors import OtherArrays

Array = NDArray[Any]
Columns = Mapping[str, Sequence[str]]  # the columns of an array, by its name


def read_table(path: Path, layout: LinkLayout, columns: Columns) -> dict[str, Array]:
    """The arrays of a table; labels that are words are strings. Raises DataError."""
    head, cells = _cells(path)
    places = _places(path, layout, columns, head, len(cells[0]))
    arrays = {}
    for a in layout.inputs:
        tail = bound(a.type.shape, a.batch)[1:]
        own = [[row[k] for k in places[a.name]] for row in cells]
        words = _words(own) if a.type.dtype.kind != "f" else None
        _check_cells(path, head, cells, places[a.name], numbers=words is None)
        if words is not None:
            arrays[a.name] = words
            continue
        arrays[a.name] = _numbers(own).reshape(-1, *tail)
    return arrays


def _cells(path: Path) -> tuple[list[str] | None, list[list[str]]]:
    """The header, if there is one, and the rows."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [[cell.strip() for cell in row] for row in csv.reader(file) if row]
    except UnicodeDecodeError as error:
        raise DataError(
            f"data {path}: byte {error.start + 1} is not UTF-8: save the file in this encoding"
        ) from None
    except (OSError, csv.Error) as error:
        raise DataError(f"data {path}: not a CSV file: {error}") from None
    other = next((mark for mark in ";\t" if rows and len(rows[0]) == 1 and mark in rows[0][0]), None)
    if other is not None:
        raise DataError(f"data {path}: has {other!r} between the cells of a row: write it with commas")
    head = rows.pop(0) if rows and not any(_is_number(c) for c in rows[0]) else None
    if not rows:
        raise DataError(f"data {path}: has no rows of numbers")
    width = len(rows[0] if head is None else head)
    for k, row in enumerate(rows):
        if len(row) != width:
            raise DataError(
                f"data {path}: row {k + 1 + (head is not None)} has {len(row)} cells, the first {width}"
            )
    if head is None:
        _check_first(path, rows)
    return head, rows


def _check_first(path: Path, rows: list[list[str]]) -> None:
    """Raises DataError for a header such as `0,1,2,label`, which would be a sample of its own: the rows below have
    numbers in place of its words, or other words, and its numbers count the columns."""
    for k, cell in enumerate(rows[0]):
        if not _is_number(cell) and len(rows) > 1 and all(_is_number(row[k]) for row in rows[1:]):
            raise DataError(
                f"data {path}: row 1, column {k + 1}: {cell!r} is not a number, the rows below have one; name no "
                "column of a header by a number"
            )
    numbers = [float(cell) for cell in rows[0] if _is_number(cell)]
    words = [k for k, cell in enumerate(rows[0]) if not _is_number(cell)]
    counted = len(numbers) > 1 and numbers == [numbers[0] + k for k in range(len(numbers))]
    if (
        len(rows) > 1
        and words
        and counted
        and numbers[0] in (0, 1)
        and all(rows[0][k] != r[k] for r in rows[1:] for k in words)
    ):
        raise DataError(
            f"data {path}: row 1: numbers that count the columns, and {rows[0][words[0]]!r}, which no row below has, "
            "are a header; name no column of it by a number; if it is a sample, give the table a header"
        )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _places(
    path: Path, layout: LinkLayout, columns: Columns, head: list[str] | None, width: int
) -> dict[str, list[int]]:
    """The indices of each array's columns."""
    arrays = {a.name: a for a in layout.inputs}
    if unknown := [n for n in columns if n not in arrays]:
        raise DataError(f"--columns: no array {unknown[0]}; the model takes {', '.join(arrays)}")
    if columns and head is None:
        raise DataError(f"data {path}: --columns names columns, and the file has no header")
    named = dict(columns)
    names = head or []
    if not columns:
        named = {n: [n] for n, a in arrays.items() if n in names and _width(a) == 1}
    for name, own in named.items():
        if missing := [c for c in own if c not in names]:
            raise DataError(f"data {path}: no column {missing[0]} for {name}; it has {', '.join(names)}")
    places = {name: [names.index(c) for c in own] for name, own in named.items()}
    taken = {k for own in places.values() for k in own}
    free = [k for k in range(width) if k not in taken]
    for name, a in arrays.items():
        if name not in places:
            places[name], free = free[: _width(a)], free[_width(a) :]
    wrong = [n for n, a in arrays.items() if len(places[n]) != _width(a)]
    if wrong or (free and not columns):
        takes = ", ".join(f"{_width(a)} for {n}" for n, a in arrays.items())
        raise OtherArrays(
            f"data {path}: has {width} columns, the model takes {takes}; name them by --columns NAME=COLUMN,COLUMN"
        )
    return places


def _width(a: LinkArray) -> int:
    return math.prod(bound(a.type.shape, a.batch)[1:])


def _words(rows: list[list[str]]) -> Array | None:
    """Classes that are words; None if all are numbers."""
    cells = [row[0] for row in rows if len(row) == 1]
    return np.array(cells) if len(cells) == len(rows) and not all(map(_is_number, cells)) else None


def _check_cells(
    path: Path, head: list[str] | None, rows: list[list[str]], columns: Iterable[int], numbers: bool
) -> None:
    """Raises DataError that names the first cell of these columns that is empty or, with `numbers`, no number."""
    for column in columns:
        for k, row in enumerate(rows):
            cell = row[column]
            if cell and (not numbers or _is_number(cell)):
                continue
            line, name = (k + 1, column + 1) if head is None else (k + 2, head[column])
            if not cell:
                raise DataError(
                    f"data {path}: row {line}, column {name}: the cell is empty; leave out the row, or fill it in"
                )
            raise DataError(f"data {path}: row {line}, column {name}: {cell!r} is not a number")


def _numbers(rows: list[list[str]]) -> Array:
    """f64, or s64 if all are whole numbers."""
    numbers = np.array([[float(c) for c in row] for row in rows])
    whole = (
        np.isfinite(numbers).all() and (numbers == np.rint(numbers)).all() and np.abs(numbers).max() < 2**53
    )
    return numbers.astype(np.int64) if whole else numbers


def read_recordings(path: Path, layout: LinkLayout) -> dict[str, Array]:
    """`CLASS/*.csv`: each file is a recording, a row for each time and a column for each channel, which is cut into
    windows of the model's input one after the other; a rest that is shorter is left out. Raises DataError."""
    if len(layout.inputs) != 2 or layout.inputs[1].type.dtype.kind == "f":
        raise DataError(
            f"data {path}: recordings in folders of classes need a model of one input and one class"
        )
    x, label = layout.inputs
    windows, classes = [], []
    for folder in sorted(p for p in path.iterdir() if p.is_dir()):
        for file in sorted(folder.glob("*.csv")):
            head, cells = _cells(file)
            _check_cells(file, head, cells, range(len(cells[0])), numbers=True)
            found = _windows(file, _numbers(cells).astype(np.float64), x)
            windows += found
            classes += [folder.name] * len(found)
    if not windows:
        raise DataError(f"data {path}: no recording is as long as {x.name}: {x.type!r}")
    return {x.name: np.stack(windows), label.name: np.array(classes)}


def _windows(path: Path, rows: Array, x: LinkArray) -> list[Array]:
    tail = bound(x.type.shape, x.batch)[1:]
    wide = [d for d in tail if d != 1] or [1]
    channels = rows.shape[1]
    if len(wide) == 1 and channels == 1:
        length, turned = wide[0], False
    elif len(wide) == 2 and channels in wide:
        turned = channels != wide[1]
        length = wide[1] if turned else wide[0]
    else:
        raise DataError(f"data {path}: {channels} columns, which is no axis of {x.name}: {x.type!r}")
    parts = [rows[k : k + length] for k in range(0, len(rows) - length + 1, length)]
    return [(p.T if turned else p).reshape(tail) for p in parts]
