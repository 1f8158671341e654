"""Data sets of CSV files: a table with a row for each sample, or recordings with a row for each time.

A table may have a header; a cell is a number, a class may be a word. `--columns x=ax,ay,az;label=activity` names the
columns of each array. A column with the name of an array that has one number or label a sample is that array. The other
columns belong to the inputs, then the targets, in the model's order. If the columns of the input are only one axis of
the model's input, the table is a recording, and is cut into windows.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.board_link_layout import LinkArray, LinkLayout
from ..errors import DataError, listed, quoted, shortened
from ..ir.types import bound
from .errors import OtherArrays
from .recording_windows import RecordingWindows, axes, elements

Array = NDArray[Any]
Columns = Mapping[str, Sequence[str]]  # the columns of an array, by its name


@dataclass(frozen=True)
class CsvOptions:
    """How CSV files are read: the columns of arrays, by name, and the windows of recordings."""

    columns: Columns
    windows: RecordingWindows


def read_table(path: Path, layout: LinkLayout, options: CsvOptions) -> dict[str, Array]:
    """The arrays of a table or of a recording; labels that are words are strings. Raises DataError."""
    arrays = _read(path, layout, options)
    x = next(a for a in layout.inputs if not a.is_target)
    if not len(arrays[x.name]):
        raise DataError(
            f"data {path}: fewer rows than a window of {x.name} has, {options.windows.length}: {x.type!r}"
        )
    return arrays


def _read(path: Path, layout: LinkLayout, options: CsvOptions) -> dict[str, Array]:
    """The arrays, with no samples if a recording is shorter than a window."""
    head, cells = _cells(path)
    places = _places(path, layout, options, head, len(cells[0]))
    columns = {}
    for a in layout.inputs:
        own = [[row[k] for k in places[a.name]] for row in cells]
        words = _words(own) if a.type.dtype.kind != "f" else None
        _check_cells(path, head, cells, places[a.name], numbers=words is None)
        columns[a.name] = _numbers(own) if words is None else words
    if not _is_recording(layout, places, options.windows):
        return {a.name: _shaped(columns[a.name], a) for a in layout.inputs}
    return _in_windows(path, layout, columns, options.windows)


def _shaped(rows: Array, a: LinkArray) -> Array:
    """Samples of the model's shape."""
    return rows.reshape(-1, *bound(a.type.shape, a.batch)[1:])


def _is_recording(layout: LinkLayout, places: Mapping[str, Sequence[int]], windows: RecordingWindows) -> bool:
    """Whether the rows are times: the columns of each input are one of its axes, not all its elements."""
    inputs = [(a, len(places[a.name])) for a in layout.inputs if not a.is_target]
    whole = all(count == elements(a) for a, count in inputs)
    return not whole and all(windows.rows(a, count) is not None for a, count in inputs)


def _in_windows(
    path: Path, layout: LinkLayout, columns: Mapping[str, Array], windows: RecordingWindows
) -> dict[str, Array]:
    """The windows of a recording; an array with one value a window has the value of the window's last row."""
    x = next(a for a in layout.inputs if not a.is_target)
    starts = windows.starts(path, x, columns[x.name].shape[1], len(columns[x.name]))
    arrays = {}
    for a in layout.inputs:
        rows = columns[a.name].reshape(len(columns[x.name]), -1)
        if a.is_target and rows.shape[1] == elements(a):
            arrays[a.name] = _shaped(windows.labels(rows, starts, counts=a.type.dtype.kind != "f"), a)
        else:
            arrays[a.name] = windows.cut(rows, a, starts)
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
    """Raises DataError if the first row is a header with numbers, such as `0,1,2,label`, and not a sample: the rows
    below have a number where it has a word; or its numbers count the columns, and no row below has its words."""
    for k, cell in enumerate(rows[0]):
        if not _is_number(cell) and len(rows) > 1 and all(_is_number(row[k]) for row in rows[1:]):
            raise DataError(
                f"data {path}: row 1, column {k + 1}: {quoted(cell)} is not a number, the rows below have one; name no "
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
            f"data {path}: row 1: numbers that count the columns, and {quoted(rows[0][words[0]])}, which no row below "
            "has, are a header; name no column of it by a number; if it is a sample, give the table a header"
        )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _is_finite(cell: str) -> bool:
    return _is_number(cell) and math.isfinite(float(cell))


def _places(
    path: Path, layout: LinkLayout, options: CsvOptions, head: list[str] | None, width: int
) -> dict[str, list[int]]:
    """The indices of each array's columns."""
    columns = options.columns
    arrays = {a.name: a for a in layout.inputs}
    if unknown := [n for n in columns if n not in arrays]:
        raise DataError(f"--columns: no array {unknown[0]}; the model takes {listed(arrays)}")
    if columns and head is None:
        raise DataError(f"data {path}: --columns names columns, and the file has no header")
    names = head or []
    own_name = {
        n: [n] for n, a in arrays.items() if n in names and (elements(a) == 1 or a.type.dtype.kind != "f")
    }
    named = own_name | dict(columns)
    for name, own in named.items():
        if missing := [c for c in own if c not in names]:
            raise DataError(f"data {path}: no column {missing[0]} for {name}; it has {listed(names)}")
    places = {name: [names.index(c) for c in own] for name, own in named.items()}
    taken = {k for own in places.values() for k in own}
    free = [k for k in range(width) if k not in taken]
    counts = _counts([a for n, a in arrays.items() if n not in places], len(free), bool(columns))
    for name, count in counts.items():
        places[name], free = free[:count], free[count:]
    whole = all(len(places[n]) == elements(a) for n, a in arrays.items())
    if (free and not columns) or not (whole or _fits_windows(layout, places, options.windows)):
        x = layout.inputs[0]
        if len(arrays) == 1 and len(axes(x)) == 2:
            raise OtherArrays(
                f"data {path}: {len(places[x.name]) + len(free)} columns, which is no axis of {x.name}: {x.type!r}; "
                f"name them by --columns {x.name}=COLUMN,COLUMN"
            )
        takes = listed(f"{_takes(a, options.windows)} for {n}" for n, a in arrays.items())
        raise OtherArrays(
            f"data {path}: has {width} columns, the model takes {takes}; name them by --columns NAME=COLUMN,COLUMN"
        )
    return places


def _counts(arrays: Sequence[LinkArray], free: int, has_more: bool) -> dict[str, int]:
    """How many of the free columns belong to each array without named columns: as many as it has elements, or, for the
    input of a recording, the columns that the targets leave. `has_more`: the file may have columns of no array."""
    counts = {a.name: elements(a) for a in arrays}
    inputs = [a.name for a in arrays if not a.is_target]
    total = sum(counts.values())
    if total == free or (has_more and total < free):
        return counts
    for a in arrays:
        if a.is_target and counts[a.name] >= free:  # a label for each row
            counts[a.name] = 1
    if len(inputs) == 1:
        counts[inputs[0]] = max(free - sum(n for name, n in counts.items() if name != inputs[0]), 0)
    return counts


def _fits_windows(layout: LinkLayout, places: Mapping[str, Sequence[int]], windows: RecordingWindows) -> bool:
    """Whether the columns of all arrays are columns of one recording."""
    if not _is_recording(layout, places, windows):
        return False
    lengths = {windows.rows(a, len(places[a.name])) for a in layout.inputs if not a.is_target}
    targets = [(a, len(places[a.name])) for a in layout.inputs if a.is_target]
    return len(lengths) == 1 and all(n == elements(a) or windows.rows(a, n) in lengths for a, n in targets)


def _takes(a: LinkArray, windows: RecordingWindows) -> str:
    """The number of columns of an array: `192`, or `192 (in a recording 3 or 64)`."""
    sizes, window = axes(a), windows.window
    if a.is_target or len(sizes) > 2:
        return str(elements(a))
    if len(sizes) == 2:
        return f"{elements(a)} (in a recording {sizes[0]} or {sizes[1]})"
    if window is not None and sizes[0] % window == 0:
        return f"{elements(a)} (in windows of {window} rows {sizes[0] // window})"
    return str(elements(a))


def _words(rows: list[list[str]]) -> Array | None:
    """Classes that are words; None if all are numbers."""
    cells = [row[0] for row in rows if len(row) == 1]
    return np.array(cells) if len(cells) == len(rows) and not all(map(_is_number, cells)) else None


def _check_cells(
    path: Path, head: list[str] | None, rows: list[list[str]], columns: Iterable[int], numbers: bool
) -> None:
    """Raises DataError for the first cell of these columns that is empty or, with `numbers`, no finite number."""
    for column in columns:
        for k, row in enumerate(rows):
            cell = row[column]
            if cell and (not numbers or _is_finite(cell)):
                continue
            line, name = (k + 1, str(column + 1)) if head is None else (k + 2, shortened(head[column]))
            if not cell:
                raise DataError(
                    f"data {path}: row {line}, column {name}: the cell is empty; leave out the row, or fill it in"
                )
            raise DataError(f"data {path}: row {line}, column {name}: {quoted(cell)} is not a number")


def _numbers(rows: list[list[str]]) -> Array:
    """f64, or s64 if all are integers."""
    numbers = np.array([[float(c) for c in row] for row in rows])
    whole = (
        np.isfinite(numbers).all() and (numbers == np.rint(numbers)).all() and np.abs(numbers).max() < 2**53
    )
    return numbers.astype(np.int64) if whole else numbers


def read_recordings(path: Path, layout: LinkLayout, options: CsvOptions) -> dict[str, Array]:
    """`CLASS/*.csv`: each file is a recording, or a table of the inputs, and its folder is its class. Raises
    DataError."""
    if len(layout.inputs) != 2 or layout.inputs[1].type.dtype.kind == "f":
        raise DataError(
            f"data {path}: recordings in folders of classes need a model of one input and one class"
        )
    x, label = layout.inputs
    alone = replace(layout, inputs=(x,))
    found, classes = [], []
    for folder in sorted(p for p in path.iterdir() if p.is_dir()):
        for file in sorted(folder.glob("*.csv")):
            found.append(_read(file, alone, options)[x.name])
            classes += [folder.name] * len(found[-1])
    if not classes:
        raise DataError(f"data {path}: no recording is as long as {x.name}: {x.type!r}")
    return {x.name: np.concatenate(found), label.name: np.array(classes)}
