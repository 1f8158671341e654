"""Network files that a build reads in place of a model file, by suffix."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import cast

from ..errors import ModelError
from .imported.program import ImportedProgram

# Suffix -> the module whose program_of(path) reads such files.
READERS = {".onnx": "onnx.load", ".pt2": "pytorch.load"}
# Suffix of files that cannot be read -> how to make one that can.
EXPORTS = {
    **dict.fromkeys((".h5", ".keras", ".tflite", ".pb"), "write an .onnx file with tf2onnx"),
    **dict.fromkeys(
        (".pt", ".pth", ".ckpt"), "write the program by torch.export.save(torch.export.export(net, args))"
    ),
    ".safetensors": "it has only weights; load them into the network, and export that",
}


_OF_A_SCRIPT = (
    "a .py file that makes a network saves it: torch.export.save(torch.export.export(net, args), 'net.pt2')"
)


def is_network(path: Path) -> bool:
    """Whether a file is a network rather than a model file, by its suffix."""
    return path.suffix in READERS or path.suffix in EXPORTS


def program_of(path: Path) -> ImportedProgram:
    """The program of a network file. Raises ModelError."""
    if path.suffix not in READERS:
        hints = {**EXPORTS, ".py": _OF_A_SCRIPT}
        how = f"; {hints[path.suffix]}" if path.suffix in hints else ""
        raise ModelError(f"{path}: networks are imported from {', '.join(READERS)} files{how}")
    if not path.exists():
        raise ModelError(f"network file {path} does not exist")
    reader = importlib.import_module(f".{READERS[path.suffix]}", __package__)
    return cast(ImportedProgram, reader.program_of(path))
