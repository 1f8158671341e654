"""Flash and RAM usage of a linked program, read from its ELF file. Stdlib only.

Layout of the headers: System V ABI, "Object Files"; 32-bit and 64-bit, little-endian.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

from ..errors import ToolError
from .board import BoardSpec

_ALLOC, _NOBITS, _LOAD = 2, 8, 1


@dataclass(frozen=True)
class Usage:
    """Bytes used of one memory region; `size` is None without a limit (host)."""

    region: str
    used: int
    size: int | None

    def __str__(self) -> str:
        if self.size is None:
            return f"{self.region:<8}{self.used:>12,} bytes"
        share = 100 * self.used / self.size
        return f"{self.region:<8}{self.used:>12,} of {self.size:>12,} bytes {share:6.1f} %"


def usage(board: BoardSpec, elf: Path | str) -> list[Usage]:
    """Bytes used per memory region of the board, including the stack; on the host, of code with constants and of data.

    Counted like the linker: from the start of a region to its last used byte, padding included. Initialised variables
    count in RAM, and their initial values in flash. Raises ToolError.
    """
    sections, segments = _headers(Path(elf))
    if board.is_host:
        code = sum(size for _, size, flags, _ in sections if flags & _ALLOC and not flags & 1)
        data = sum(size for _, size, flags, _ in sections if flags & _ALLOC and flags & 1)
        return [Usage("code", code, None), Usage("data", data, None)]
    used = {region.name: 0 for region in board.memory.values()}

    def reach(address: int, size: int) -> None:
        for region in board.memory.values():
            if region.origin <= address < region.end:
                used[region.name] = max(used[region.name], address + size - region.origin)

    for address, size, flags, _kind in sections:
        if flags & _ALLOC and size:
            reach(address, size)
    for _virtual, physical, size in segments:
        if size:
            reach(physical, size)
    return [Usage(region.name, used[region.name], region.bytes) for region in board.memory.values()]


def _headers(path: Path) -> tuple[list[tuple[int, int, int, int]], list[tuple[int, int, int]]]:
    """(address, size, flags, type) per section, (virtual address, physical address, bytes in the file) per segment."""
    try:
        data = path.read_bytes()
        if data[:4] != b"\x7fELF" or data[5] != 1:
            raise ToolError(f"{path}: not a little-endian ELF file")
        wide = data[4] == 2
        head = struct.unpack_from("<QQQIHHHHHH" if wide else "<IIIIHHHHHH", data, 24)
        _, phoff, shoff, _, _, phsize, phnum, shsize, shnum, _ = head
        sections = []
        for offset in range(shoff, shoff + shnum * shsize, shsize):
            fields = struct.unpack_from("<IIQQQQ" if wide else "<IIIIII", data, offset)
            _, kind, flags, address, _, size = fields
            sections.append((address, size, flags, kind))
        segments = []
        for offset in range(phoff, phoff + phnum * phsize, phsize):
            if wide:
                kind, _, _, virtual, physical, size = struct.unpack_from("<IIQQQQ", data, offset)
            else:
                kind, _, virtual, physical, size = struct.unpack_from("<IIIII", data, offset)
            if kind == _LOAD:
                segments.append((virtual, physical, size))
        return sections, segments
    except OSError as error:
        raise ToolError(f"{path}: cannot be read: {error.strerror}") from None
    except (struct.error, IndexError):
        raise ToolError(f"{path}: not a complete ELF file") from None
