"""Weights of a server in the dtypes of boards: integers where the model has 8-bit weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..codegen.program import Slot
from ..errors import ShapeError


def rounded(slots: Sequence[Slot], weights: Mapping[str, Any], *seed: int) -> dict[str, Any]:
    """Round floats of a state of integers up or down at random by the seed, so that the mean is right, and limit them
    to the range of the dtype. Channels that do not train get the program's constants. Raises ShapeError for a number
    that is not finite."""
    found = dict(weights)
    for k, slot in enumerate(slots):
        array, type = np.asarray(weights.get(slot.name)), slot.state.logical
        if array.shape != tuple(type.shape) or array.dtype.kind not in "fiu":
            continue  # the code that sends the weights raises an error
        if type.dtype.kind in "iu" and array.dtype.kind == "f":
            if not (finite := np.isfinite(array)).all():
                raise ShapeError(f"weights: {slot.name} is {type}, got {array[~finite].flat[0]}")
            limits, low = np.iinfo(type.dtype.numpy), np.floor(array)
            up = np.random.default_rng((*seed, k)).random(array.shape) < array - low
            array = np.clip(low + up, limits.min, limits.max).astype(type.dtype.numpy)
        found[slot.name] = slot.state.restored(slot.state.stored(array))
    return found
