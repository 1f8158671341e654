"""The memory of a linked program, symbol by symbol: the rows of a memory add up to the size that `size` prints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from ..errors import ToolError
from ..targets.board import BoardSpec
from ..targets.size import Usage, usage

CODE, CONSTANT, VARIABLE, OTHER = "code", "constant", "variable", "other"
_WRITE, _ALLOC, _EXECUTE = 1, 2, 4


@dataclass(frozen=True)
class Symbol:
    """Bytes of a function or a variable in a memory, or the bytes of a section that no symbol covers; `kind`: CODE,
    CONSTANT, VARIABLE or OTHER."""

    name: str
    kind: str
    bytes: int


@dataclass(frozen=True)
class MemoryUse:
    """A region of the board's memory, or the code or data of the host: its symbols, largest first."""

    usage: Usage
    symbols: tuple[Symbol, ...]


def memories(board: BoardSpec, elf: Path) -> list[MemoryUse]:
    """The memories of a board that a program uses. Raises ToolError."""
    used = usage(board, elf)
    found: dict[str, list[Symbol]] = {u.region: [] for u in used}
    try:
        with elf.open("rb") as stream:
            image = ELFFile(stream)
            for index, section in enumerate(image.iter_sections()):
                if section["sh_flags"] & _ALLOC and section["sh_size"]:
                    rows = [*_symbols(image, index, section)]
                    region = _region(board, section)
                    found.setdefault(region, []).extend(rows)
                    stored = _stored(board, image, section)
                    if stored is not None and stored != region:
                        found[stored].append(
                            Symbol(f"initial values of {section.name}", CONSTANT, section["sh_size"])
                        )
    except (ELFError, OSError) as error:
        raise ToolError(f"{elf}: cannot be read: {error}") from None
    result = []
    for u in used:
        rest = u.used - sum(s.bytes for s in found[u.region])
        rows = found[u.region] + ([Symbol("padding", OTHER, rest)] if rest else [])
        if rows:
            result.append(MemoryUse(u, tuple(sorted(rows, key=lambda s: (-s.bytes, s.name)))))
    return result


def _region(board: BoardSpec, section: Any) -> str:
    if board.is_host:
        return "data" if section["sh_flags"] & _WRITE else "code"
    return _region_at(board, section["sh_addr"]) or ""


def _region_at(board: BoardSpec, address: int) -> str | None:
    return next((r.name for r in board.memory.values() if r.origin <= address < r.end), None)


def _stored(board: BoardSpec, image: Any, section: Any) -> str | None:
    """The region from which a section is copied at start-up."""
    if board.is_host or section["sh_type"] == "SHT_NOBITS":
        return None
    for segment in image.iter_segments("PT_LOAD"):
        offset = section["sh_addr"] - segment["p_vaddr"]
        if 0 <= offset < segment["p_filesz"]:
            return _region_at(board, segment["p_paddr"] + offset)
    return None


def _symbols(image: Any, index: int, section: Any) -> Iterator[Symbol]:
    """The symbols of a section and its remaining bytes; where symbols overlap, the first one has the bytes."""
    flags, at = section["sh_flags"], section["sh_addr"]
    kind = CODE if flags & _EXECUTE else VARIABLE if flags & _WRITE else CONSTANT
    table = image.get_section_by_name(".symtab")
    rows = []
    for s in table.iter_symbols() if table is not None else ():
        if s["st_shndx"] == index and s["st_size"] and s["st_info"]["type"] in ("STT_FUNC", "STT_OBJECT"):
            is_code = s["st_info"]["type"] == "STT_FUNC"
            thumb = 1 if is_code and image["e_machine"] == "EM_ARM" else 0
            what = kind if is_code or kind != CODE else CONSTANT
            rows.append((s["st_value"] & ~thumb, -s["st_size"], s.name, what))
    end, left = at, section["sh_size"]
    for start, size, name, what in sorted(rows):
        fresh = min(start - size, at + section["sh_size"]) - max(start, end)
        if fresh > 0:
            yield Symbol(name, what, fresh)
            end, left = start - size, left - fresh
    if left:
        rest = "without symbol" if rows else ""
        yield Symbol(f"{section.name} {rest}".rstrip(), OTHER if section.name == ".stack" else kind, left)
