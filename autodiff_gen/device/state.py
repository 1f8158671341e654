"""Convert a trainer's state between the bytes of its C struct and arrays by name in the model's shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.program import Program, Slot
from ..codegen.state_dict import given, state_dict
from ..errors import DataError
from ..ir.types import planned

Array = NDArray[Any]


def state_arrays(program: Program, data: bytes) -> dict[str, Array]:
    """Name -> array, from `program.state_bytes` bytes. Raises DataError for another size."""
    if len(data) != program.state_bytes:
        raise DataError(f"state of {program.name}: expected {program.state_bytes} bytes, got {len(data)}")
    return state_dict(program, arrays_of(program.slots, data))


def arrays_of(slots: Sequence[Slot], data: bytes) -> dict[str, Array]:
    """Name -> array, from the bytes of states that follow each other."""
    arrays, offset = {}, 0
    for slot in slots:
        shape = planned(slot.type.shape)
        part = data[offset : offset + slot.type.bytes]
        stored = np.frombuffer(part, slot.type.dtype.numpy).reshape(shape)
        arrays[slot.name] = np.ascontiguousarray(slot.state.restored(stored)).reshape(
            planned(slot.state.logical.shape)
        )
        offset += 4 * slot.words
    return arrays


def state_bytes(program: Program, state: Mapping[str, Any]) -> bytes:
    """The inverse of `state_arrays`. Raises ShapeError for another shape or dtype."""
    return b"".join(slot_bytes(slot, state[slot.name]) for slot in program.slots)


def slot_bytes(slot: Slot, value: Any) -> bytes:
    """The bytes of one state, with zeros up to a whole word. Raises ShapeError."""
    data = np.ascontiguousarray(slot.state.stored(given(slot, "weights", value))).tobytes()
    return data + bytes(4 * slot.words - len(data))
