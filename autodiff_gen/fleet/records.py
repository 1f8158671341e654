"""The samples of a board as the contents of its samples.bin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.link_layout import LinkArray, LinkLayout
from ..datasets.samples import SampleSet

Array = NDArray[Any]


def records(layout: LinkLayout, data: Mapping[str, Array], rows: Any) -> bytes:
    """Rows of a data set: inputs, then targets, each as the board's memory has it, or floats that are multiples of
    1 / 255 as bytes, if all of the inputs are."""
    parts = [
        _part([a for a in layout.inputs if a.is_target is target], data, rows) for target in (False, True)
    ]
    whole = np.concatenate(parts, axis=1)
    return SampleSet(whole, parts[0].shape[1], parts[1].shape[1], len(rows), 1).to_bytes()


def _part(arrays: Sequence[LinkArray], data: Mapping[str, Array], rows: Any) -> NDArray[np.uint8]:
    values = [
        np.ascontiguousarray(data[a.name][rows], a.type.dtype.numpy).reshape(len(rows), -1) for a in arrays
    ]
    floats = [x for x in values if x.dtype.kind == "f"]
    units = [np.round(x * 255).clip(0, 255) for x in floats]
    if floats and all(
        np.array_equal((u.astype(np.float32) / np.float32(255)), x)
        for u, x in zip(units, floats, strict=True)
    ):
        values = [np.round(x * 255).astype(np.uint8) if x.dtype.kind == "f" else x for x in values]
    columns = [x.view(np.uint8).reshape(len(rows), -1) for x in values]
    return np.concatenate(columns, axis=1) if columns else np.zeros((len(rows), 0), np.uint8)
