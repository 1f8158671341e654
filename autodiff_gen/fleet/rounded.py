"""Weights of a server as boards hold them: integers where the model has 8-bit weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..codegen.program import Slot
from ..errors import ShapeError


def rounded(slots: Sequence[Slot], weights: Mapping[str, Any], *seed: int) -> dict[str, Any]:
    """Floats of a state of integers are rounded up or down at random by the seed, right on average, and limited to the
    range of its dtype; channels that do not train have the program's constants. Raises ShapeError for a number that is
    not finite."""
    found = dict(weights)
    for k, slot in enumerate(slots):
        array, type = np.asarray(weights.get(slot.name)), slot.state.logical
        if array.shape != tuple(type.shape) or array.dtype.kind not in "fiu":
            continue  # which is an error where they are sent
        if type.dtype.kind in "iu" and array.dtype.kind == "f":
            if not (finite := np.isfinite(array)).all():
                raise ShapeError(f"weights: {slot.name} is {type}, got {array[~finite].flat[0]}")
            limits, low = np.iinfo(type.dtype.numpy), np.floor(array)
            up = np.random.default_rng((*seed, k)).random(array.shape) < array - low
            array = np.clip(low + up, limits.min, limits.max).astype(type.dtype.numpy)
        found[slot.name] = slot.state.restored(slot.state.stored(array))
    return found
