"""The samples of a board as the contents of its samples.bin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.board_link_layout import LinkArray, LinkLayout
from ..datasets.samples import LARGEST_ZERO, SampleSet

Array = NDArray[Any]
Scale = tuple[float, int]  # divisor and zero
_UNIT: Scale = (255.0, 0)
_BITS = 24  # of the largest power of 2 that is tried as a divisor


def records(layout: LinkLayout, data: Mapping[str, Array], rows: Any, test: Any = ()) -> bytes:
    """`rows` of a data set to train on, then rows to `test` on: inputs, then targets. A record is one row, or several
    if `rows` has two axes. Floats are stored as bytes if all are multiples of 1 / 255 or of 1 / 2^k; other arrays as in
    the board's memory."""
    rows = np.concatenate([np.asarray(part, np.intp) for part in (rows, test) if len(part)])
    inputs, targets = (
        _values([a for a in layout.inputs if a.is_target is target], data, rows) for target in (False, True)
    )
    scale = _scale(inputs) or _scale(targets) or _UNIT
    parts = [_bytes(values, scale, len(rows)) for values in (inputs, targets)]
    whole, (divisor, zero) = np.concatenate(parts, axis=1), scale
    train = len(rows) - len(test)
    return SampleSet(whole, parts[0].shape[1], parts[1].shape[1], train, 1, divisor, zero).to_bytes()


def _values(arrays: Sequence[LinkArray], data: Mapping[str, Array], rows: Any) -> list[Array]:
    return [
        np.ascontiguousarray(data[a.name][rows], a.type.dtype.numpy).reshape(len(rows), -1) for a in arrays
    ]


def _as_bytes(x: Array, scale: Scale) -> Array | None:
    """Bytes that stand for these floats, bit for bit; None if there are none."""
    divisor, zero = np.float32(scale[0]), scale[1]
    with np.errstate(invalid="ignore", over="ignore"):
        found = np.rint(x.astype(np.float64) * float(divisor)) + zero
        if not ((found >= 0) & (found <= 255)).all():  # also False for NaN
            return None
        back = (found - zero).astype(np.float32) / divisor
    return found.astype(np.uint8) if np.array_equal(back.view(np.uint32), x.view(np.uint32)) else None


def _scale(values: Sequence[Array]) -> Scale | None:
    """The scale by which bytes represent all floats of a part; None without one."""
    floats = np.concatenate([x.ravel() for x in values if x.dtype.kind == "f"] or [np.zeros(0, np.float32)])
    if not floats.size or not np.isfinite(floats).all():
        return None
    least = float(floats.min())
    for divisor in (_UNIT[0], *(2.0**k for k in range(_BITS))):
        zero = max(0, -int(np.rint(least * divisor))) if divisor != _UNIT[0] else 0
        if zero <= LARGEST_ZERO and _as_bytes(floats, (divisor, zero)) is not None:
            return divisor, zero
    return None


def _bytes(values: Sequence[Array], scale: Scale, rows: int) -> NDArray[np.uint8]:
    """A part of the records: its floats as bytes if bytes represent all of them."""
    packed = [_as_bytes(x, scale) if x.dtype.kind == "f" else x for x in values]
    whole = values if any(x is None for x in packed) else [x for x in packed if x is not None]
    columns = [np.ascontiguousarray(x).view(np.uint8).reshape(rows, -1) for x in whole]
    return np.concatenate(columns, axis=1) if columns else np.zeros((rows, 0), np.uint8)
