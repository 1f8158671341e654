"""Read zip archives (.pt2, .npz): declared sizes are checked before anything is unpacked."""

from __future__ import annotations

import io
import lzma
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import IO

from ..errors import AutodiffError, quoted
from .limits import ENTRIES, MEMORY, TEXT, Limit
from .regular import open_regular

# The exceptions that zipfile raises for damaged archives.
DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    RuntimeError,
    NotImplementedError,
    ValueError,
    OverflowError,
)


class Archive:
    """The entries of an archive by name. name: the file's name in messages; what: the expected kind of file; around:
    the archive that has this one as an entry: limits then grow with its size. Raises an error of `error_type` for a
    file that is no archive, has an entry without a name or two of one name, or declares more than the limits allow."""

    def __init__(
        self,
        file: Path | IO[bytes] | bytes,
        name: str,
        error_type: type[AutodiffError],
        what: str = "archive",
        around: Archive | None = None,
    ) -> None:
        self.name, self.error_type, self._what = name, error_type, what
        stream: IO[bytes]
        if isinstance(file, Path):
            stream = open_regular(file, error_type)
        else:
            stream = io.BytesIO(file) if isinstance(file, bytes) else file
        self._own = stream if stream is not file else None
        try:
            size = stream.seek(0, io.SEEK_END)
            self.size: int = size if around is None else around.size
            stream.seek(0)
            self._zip = zipfile.ZipFile(stream)
        except DAMAGED:
            self.close()
            raise error_type(f"{name} is no complete {what}: truncated, or another format") from None
        try:
            self._check()
        except AutodiffError:
            self.close()
            raise

    def _check(self) -> None:
        entries = self._zip.infolist()
        ENTRIES.check(len(entries), self.name, self.error_type)
        names = Counter(e.filename for e in entries)
        if "" in names:
            raise self.error_type(f"{self.name} has an entry without a name; save it again")
        twice = next((n for n, count in names.items() if count > 1), None)
        if twice is not None:
            raise self.error_type(f"{self.name} has two entries {quoted(twice)}; save it again")
        MEMORY.check(sum(e.file_size for e in entries), self.name, self.error_type, self.size)

    def __enter__(self) -> Archive:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._own is not None:
            self._own.close()

    def names(self) -> Iterable[str]:
        """The names of all entries."""
        return self._zip.namelist()

    def declared(self, entry: str) -> int:
        """The number of bytes that the archive declares for an entry; `read` rejects an entry of another size."""
        return self._zip.getinfo(entry).file_size

    def read(self, entry: str, limit: Limit | None = None) -> bytes:
        """The bytes of an entry. Raises an error for an entry that is damaged, or above the limit."""
        if limit is not None:
            limit.check(self.declared(entry), self.name, self.error_type, self.size)
        try:
            content = self._zip.read(entry)
        except DAMAGED:
            content = None
        if content is None or len(content) != self.declared(entry):
            raise self.error_type(
                f"{self.name}: the entry {quoted(entry)} is damaged; copy or save the file again"
            )
        return content

    def read_text(self, entry: str) -> bytes:
        """The bytes of an entry of text, within the limit of text: parsed values need more memory than the text."""
        return self.read(entry, TEXT)
