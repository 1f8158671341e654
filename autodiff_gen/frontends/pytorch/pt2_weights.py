"""The weights and constants in an archive of torch.export.save."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ModelError, quoted
from ...reading.archive import Archive
from ...reading.fields import each, field, integer, only, text
from ...reading.limits import MEMORY
from ...reading.torch_state import saved_tensors
from .graph import RANK, dtype_name
from .pt2_entries import KINDS, Entries

# ScalarType of the schema -> its NumPy dtype; others are not read.
DTYPES = {1: "u1", 2: "i1", 3: "i2", 4: "i4", 5: "i8", 6: "f2", 7: "f4", 8: "f8", 10: "c8", 12: "?"}
TORCH_SAVE = "archive of torch.save"


@dataclass(frozen=True)
class StoredTensor:
    """A tensor of the archive. where: the entry, and offset, shape and strides in it; equal for tied weights."""

    array: NDArray[Any]
    dtype: str
    requires_grad: bool
    where: Any


def stored_tensors(entries: Entries) -> dict[str, StoredTensor]:
    """All tensors by name."""
    found: dict[str, StoredTensor] = {}
    listed = _Listed(entries)
    for kind in KINDS:
        if entries.pickled(kind) in entries:
            found |= _pickled(entries, entries.pickled(kind))
        elif entries.config(kind) in entries:
            found |= listed.read(kind)
    return found


def _pickled(entries: Entries, file: str) -> dict[str, StoredTensor]:
    """The tensors of one kind, in one archive of torch.save."""
    name = f"{entries.name}: {file}"
    with Archive(entries.bytes(file), name, ModelError, TORCH_SAVE, entries.archive) as archive:
        saved = saved_tensors(archive, ModelError, "save the network again, with tensors as its weights")
    half = next((n for n, tensor in saved.items() if tensor.type == "BFloat16"), None)
    if half is not None:
        raise _not_read(f"{entries.name}: the weight {quoted(half)}", "bfloat16")
    return {
        n: StoredTensor(t.array, t.array.dtype.name, t.requires_grad, (f"{file}/{t.place[0]}", *t.place[1:]))
        for n, t in saved.items()
    }


def _not_read(place: str, dtype: str) -> ModelError:
    return ModelError(f"{place} is {dtype}, stored in a way that cannot be read; use float32")


class _Listed:
    """Tensors that have an entry each."""

    def __init__(self, entries: Entries) -> None:
        self.entries = entries
        self.bytes = 0  # that were read

    def read(self, kind: str) -> dict[str, StoredTensor]:
        listed = field(self.entries.json(self.entries.config(kind), unique=True), "config", dict)
        return {name: self._tensor(kind, name, entry) for name, entry in listed.items()}

    def _tensor(self, kind: str, name: str, entry: Any) -> StoredTensor:
        place = f"{self.entries.name}: the weight {quoted(name)}"
        meta = field(entry, "tensor_meta", dict)
        dtype = integer(meta.get("dtype"), "dtype")
        pickled = bool(entry.get("use_pickle"))
        if dtype not in DTYPES or (pickled and dtype_name(dtype) != "complex64"):
            raise _not_read(place, dtype_name(dtype))
        file = f"data/{kind}/{text(entry['path_name'], 'path_name')}"
        shape, strides = (_numbers(meta, k) for k in ("sizes", "strides"))
        offset = integer(only(meta["storage_offset"], "storage_offset")[1], "storage_offset", 0)
        if len(shape) != len(strides) or len(shape) > RANK:
            raise ModelError(f"{place} has {len(shape)} axes and {len(strides)} strides; save the file again")
        elements = np.dtype("<" + DTYPES[dtype])
        self.bytes += math.prod(shape) * elements.itemsize
        MEMORY.check(self.bytes, place, ModelError, self.entries.archive.size)
        data = self.entries.bytes(file)
        content = self._storage(data, place) if pickled else data
        array = _strided(np.frombuffer(content, elements), shape, strides, offset)
        if array is None:
            raise ModelError(f"{place} is truncated in the archive; save the file again")
        trained = field(meta, "requires_grad", bool)
        return StoredTensor(array, dtype_name(dtype), trained, (file, offset, shape, strides))

    def _storage(self, saved: bytes, place: str) -> bytes:
        """The elements of one tensor in an archive that torch.save wrote; its pickle is not read."""
        with Archive(saved, place, ModelError, TORCH_SAVE, self.entries.archive) as archive:
            return archive.read(next(n for n in archive.names() if n.endswith("/data/0")))


def _numbers(meta: Mapping[str, Any], name: str) -> tuple[int, ...]:
    """Sizes or strides."""
    return each(meta[name], name, lambda size: integer(only(size, name)[1], name, 0))


def _strided(
    elements: NDArray[Any], shape: tuple[int, ...], strides: tuple[int, ...], offset: int
) -> NDArray[Any] | None:
    """A copy of the tensor at an offset of its storage; None if the storage is too short. Sizes, strides and offset
    must not be negative."""
    if 0 in shape:
        return np.zeros(shape, elements.dtype)
    last = offset + sum((d - 1) * s for d, s in zip(shape, strides, strict=True))
    if last >= elements.size:
        return None
    view = np.lib.stride_tricks.as_strided(
        elements[offset:], shape, [s * elements.itemsize for s in strides], writeable=False
    )
    return view.copy()
