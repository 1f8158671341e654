"""`from_onnx`, and the reader of .onnx files of a build."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ... import nn
from ..imported.network import network
from ..imported.program import ImportedProgram
from .convert import convert
from .read import read


def from_onnx(model: Any) -> nn.Module:
    """A network of ONNX as a Module; the initializers that layers read are its parameters.

    model: the path of a file, or an onnx.ModelProto. The first axis is the batch, free if it has no number in the file.
    The network computes the same as the file, in evaluation mode; train() sets BatchNorm and Dropout to training.
    Raises ModelError with everything that cannot be imported in one message; ToolError without the package onnx.
    """
    if isinstance(model, str | Path):
        name = Path(model).name
    else:
        name = getattr(getattr(model, "graph", None), "name", "") or "network"
    return network(convert(read(model, name), name), name)


def program_of(path: Path) -> ImportedProgram:
    """The program of an .onnx file. Raises ModelError for a file that is no ONNX, and for a network that cannot be
    imported."""
    return convert(read(path, path.name), path.name)
