"""Cut recordings, which have a row for each time and a column for each channel, into windows of a model's input."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.board_link_layout import LinkArray
from ..errors import DataError, counted
from ..ir.types import bound

Array = NDArray[Any]


def elements(a: LinkArray) -> int:
    """Elements of a sample."""
    return math.prod(bound(a.type.shape, a.batch)[1:])


def axes(a: LinkArray) -> list[int]:
    """The axes of a sample that are longer than 1."""
    return [d for d in bound(a.type.shape, a.batch)[1:] if d != 1] or [1]


@dataclass
class RecordingWindows:
    """Windows of `window` rows (None: of as many as the model's input has), which begin every `stride` rows (None: one
    after the other); rows after the last whole window are left out. Counts the windows."""

    window: int | None = None
    stride: int | None = None
    length: int = 0
    count: int = 0
    mixed: int = 0  # windows with more than one label

    @property
    def is_given(self) -> bool:
        return self.window is not None or self.stride is not None

    def rows(self, a: LinkArray, channels: int) -> int | None:
        """The rows of a window of `channels` columns; None if the columns are no axis of the array."""
        sizes = axes(a)
        if len(sizes) == 1 and channels == 1:
            return sizes[0]
        if len(sizes) == 2 and channels in sizes:
            return sizes[0] if channels == sizes[1] else sizes[1]
        if len(sizes) == 1 and self.window is not None and self.window * channels == sizes[0]:
            return self.window  # times, then channels, in one axis
        return None

    def starts(self, path: Path, x: LinkArray, channels: int, total: int) -> range:
        """The first row of each window of a recording of `total` rows. Raises DataError where --window is not the
        model's."""
        length = self.rows(x, channels)
        assert length is not None
        if self.window is not None and self.window != length:
            raise DataError(
                f"data {path}: --window {self.window}: {x.name}: {x.type!r} takes windows of {length} rows of "
                f"{counted(channels, 'column')}"
            )
        self.length = length
        starts = range(0, total - length + 1, self.stride or length)
        self.count += len(starts)
        return starts

    def cut(self, rows: Array, a: LinkArray, starts: range) -> Array:
        """The windows of `rows`, [times, channels], as [windows, ...] in the model's shape."""
        sizes = axes(a)
        times = np.add.outer(np.array(starts, np.int64), np.arange(self.length))
        parts = rows[times]
        turned = len(sizes) == 2 and rows.shape[1] != sizes[1]
        return (parts.swapaxes(1, 2) if turned else parts).reshape(-1, *bound(a.type.shape, a.batch)[1:])

    def labels(self, rows: Array, starts: range, counts: bool) -> Array:
        """The label of each window: the label of its last row. `counts`: count windows with several labels."""
        if counts:
            self.mixed += sum(len(np.unique(rows[k : k + self.length])) > 1 for k in starts)
        return rows[np.array(starts, np.int64) + self.length - 1]

    def note(self) -> str:
        """`windows: 12 of 64 rows, one every 32 rows; 2 contain more than one label and have the label of
        their last row`; empty if nothing was cut."""
        if not self.length:
            return ""
        text = f"windows: {self.count:,} of {counted(self.length, 'row')}, one every "
        text += counted(self.stride or self.length, "row")
        if self.mixed:
            text += f"; {self.mixed:,} contain more than one label and have the label of their last row"
        return text
