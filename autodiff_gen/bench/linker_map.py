"""Code size of each part of a program, read from the linker map of GNU ld."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import ToolError


@dataclass(frozen=True)
class LinkedSection:
    """An input section that was linked: `.text.ag_expf`, 120 bytes, from `libw1.a(w1.o)`."""

    section: str
    bytes: int
    source: str


def pieces(path: Path) -> Iterator[LinkedSection]:
    """All input sections that occupy memory. Raises ToolError."""
    try:
        text = path.read_text()
    except OSError as error:
        raise ToolError(f"{path}: cannot be read: {error.strerror}") from None
    _, found, body = text.partition("Linker script and memory map")
    if not found:
        raise ToolError(f"{path}: not a map of GNU ld")
    for m in re.finditer(r"^ (\.\S+)\s+0x([0-9a-f]+)\s+0x([0-9a-f]+) (\S.*)$", body, re.MULTILINE):
        if int(m[3], 16) and (int(m[2], 16) or m[1].startswith(".text")):
            yield LinkedSection(m[1], int(m[3], 16), m[4])


def text_bytes(path: Path, name: str) -> dict[str, int]:
    """Bytes of code and constants: `trainer`, the model's generated C without its initial weights; `kernels`;
    `ag_math`, its functions that were not inlined; and the sum, `together`. Raises ToolError."""
    sizes = {"trainer": 0, "kernels": 0, "ag_math": 0}
    for piece in pieces(path):
        if not piece.section.startswith((".text", ".rodata")):
            continue
        if re.search(rf"(^|[/(]){re.escape(name)}\.o\)?$", piece.source):
            math = re.match(r"\.text\.ag_", piece.section)
            sizes["ag_math" if math else "trainer"] += piece.bytes
        elif "_kernels.a(" in piece.source:
            sizes["kernels"] += piece.bytes
    return {**sizes, "together": sum(sizes.values())}
