"""Read a file that torch.export.save wrote; PyTorch is not needed."""

from __future__ import annotations

from pathlib import Path

from ..imported.program import ImportedProgram
from .convert import convert
from .pt2 import read


def program_of(path: Path) -> ImportedProgram:
    """The program of a .pt2 file. Raises ModelError for a file that is no .pt2, and for a network that cannot be
    imported."""
    return convert(read(path, path.name), path.name)
