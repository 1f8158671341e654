"""Read regular files: a pipe would wait for its writer, and a device may have no end."""

from __future__ import annotations

import os
import stat
from io import BufferedReader
from pathlib import Path

from ..errors import AutodiffError
from .limits import Limit

_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a folder",
}


def open_regular(path: Path, error_type: type[AutodiffError], what: str = "") -> BufferedReader:
    """The file, opened for reading. Raises an error of this kind if it is missing, or no regular file. `what`: text
    before the path in messages."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise error_type(f"{what}{path}: cannot be read: {error.strerror}") from None
    except ValueError:  # a NUL character
        raise error_type(f"{what}{path}: is no name of a file") from None
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        raise error_type(f"{what}{path} is {_KINDS.get(stat.S_IFMT(mode), 'no file')}; give a regular file")
    return os.fdopen(handle, "rb")


def read_bytes(
    path: Path, error_type: type[AutodiffError], limit: Limit | None = None, what: str = ""
) -> bytes:
    """The bytes of a file. Raises an error of this kind as `open_regular` does, and for a file above the limit."""
    with open_regular(path, error_type, what) as file:
        size = os.fstat(file.fileno()).st_size
        if limit is not None:
            limit.check(size, f"{what}{path}", error_type)
        return file.read()


def read_text(path: Path, error_type: type[AutodiffError], limit: Limit | None = None) -> str:
    """The text of a file in UTF-8, without a byte order mark, which editors of Windows write. Raises an error of this
    kind as `read_bytes` does, and for other encodings."""
    try:
        return read_bytes(path, error_type, limit).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise error_type(
            f"{path}: byte {error.start + 1} is not UTF-8: save the file in this encoding"
        ) from None
