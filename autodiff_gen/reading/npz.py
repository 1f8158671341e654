"""Read the arrays of .npz and .npy files without pickle: dtype and shape are checked before memory is allocated."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ..errors import AutodiffError, DataError, quoted, shortened
from .archive import Archive
from .limits import MEMORY
from .regular import read_bytes

_HEADER = 10_000  # bytes
NUMBERS = "biuf"  # kinds of dtypes: bool, integers, floats
WORDS = "U"
_LAST_CHARACTER = 0x10FFFF


def load_arrays(path: str | Path) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz file by name, for `load_state_dict`. Nothing in the file is executed. Raises DataError for
    a file that is missing or damaged, has two arrays of one name, or has elements other than numbers and bool."""
    return read_npz(Path(path), DataError)


def npz_of(arrays: Mapping[str, Any]) -> bytes:
    """Arrays as an .npz file. Unlike np.savez it allows all names: np.savez has arguments of some names."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                npy.write_array(entry, np.asanyarray(array), allow_pickle=False)
    return made.getvalue()


def read_npz(
    path: Path, error_type: type[AutodiffError], elements: str = NUMBERS, what: str = ""
) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz file by name. Raises an error of this kind for a file that is no .npz file, is damaged, has
    two arrays of one name, or arrays of other dtypes. `elements`: the allowed kinds of dtypes; `what`: text before the
    path in messages."""
    name_of_file = f"{what}{path}"
    with Archive(path, name_of_file, error_type, "file of np.savez") as archive:
        arrays: dict[str, NDArray[Any]] = {}
        for entry in archive.names():
            name = entry.removesuffix(".npy")
            if name == entry:
                raise error_type(
                    f"{name_of_file}: the entry {quoted(entry)} is no array; write the file by np.savez"
                )
            place = f"{name_of_file}: the array {quoted(name)}"
            arrays[name] = _array(archive.read(entry), place, error_type, elements)
        return arrays


def read_npy(
    path: Path, error_type: type[AutodiffError], elements: str = NUMBERS, what: str = ""
) -> NDArray[Any]:
    """The array of an .npy file. Raises as read_npz does."""
    return _array(read_bytes(path, error_type, what=what), f"{what}{path}", error_type, elements)


def _array(data: bytes, place: str, error_type: type[AutodiffError], kinds: str) -> NDArray[Any]:
    stream = io.BytesIO(data)
    try:
        version = npy.read_magic(stream)
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, by_columns, dtype = read_header(stream, max_header_size=_HEADER)
    except Exception:  # NumPy evaluates the header as a literal of Python, with errors of many kinds
        raise error_type(f"{place} is damaged, or no array of NumPy; write it by np.savez") from None
    if dtype.kind not in kinds or dtype.itemsize == 0:
        raise error_type(f"{place} has elements of dtype {shortened(str(dtype))}; save numbers")
    if any(type(extent) is not int or extent < 0 for extent in shape):
        raise error_type(f"{place} has the shape {shortened(str(shape))}; write it by np.savez")
    MEMORY.check(math.prod(shape) * dtype.itemsize, place, error_type, len(data))
    wanted, held = math.prod(shape) * dtype.itemsize, len(data) - stream.tell()
    if wanted != held:
        raise error_type(
            f"{place} has {held:,} bytes, its shape needs {wanted:,}; copy or save the file again"
        )
    elements = np.frombuffer(data, dtype, offset=stream.tell())
    if dtype.kind == "b":
        elements = elements.view(np.uint8) != 0  # NumPy expects the bytes of bools to be 0 or 1
    if dtype.kind == WORDS and elements.view(dtype.str[0] + "u4").max(initial=0) > _LAST_CHARACTER:
        raise error_type(f"{place} has words of unknown characters; write it by np.savez")
    return np.array(elements.reshape(shape, order="F" if by_columns else "C"))
