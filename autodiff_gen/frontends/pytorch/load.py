"""Read a file that torch.export.save wrote; PyTorch is not needed."""

from __future__ import annotations

from pathlib import Path

from ... import nn
from ..imported.network import network
from ..imported.program import Program
from .convert import convert
from .pt2 import read


def program_of(path: Path) -> Program:
    """The program of a .pt2 file. Raises ModelError."""
    return convert(read(path, path.name), path.name)


def from_pt2(path: str | Path) -> nn.Module:
    """The network of a .pt2 file, with its module tree, parameter names and values; `ag.from_torch` without PyTorch.

    Raises ModelError for a file that is none, and for what cannot be imported."""
    return network(program_of(Path(path)), Path(path).name)
