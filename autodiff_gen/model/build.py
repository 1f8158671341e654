"""`build`: a model file to generated C in a folder, all files or none."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ..codegen.compiler import compile_functions, compile_model
from ..codegen.files import emit
from ..codegen.program import Program
from ..errors import ToolError
from ..targets.board import Board
from .loader import load_file
from .model import Functions, Model


def build(
    model: str,
    board: Board,
    out: Path,
    name: str | None = None,
    kernels: Sequence[str] | None = ("ref",),
    ram: int | None = None,
    dump: Path | None = None,
) -> list[Path]:
    """Write NAME.h, NAME.c, NAME_params.c and NAME.deps.json into `out`; the files that were written.

    Nothing is written, and earlier files stay, when the model cannot be compiled. Raises AutodiffError.
    """
    file = load_file(model)
    name = name if name is not None else file.name
    texts = emit(compile_file(file.made, name, kernels, board, ram, dump))
    return write_all(out, {**texts, f"{name}.deps.json": deps_json(file.files)})


def compile_file(
    made: Model | Functions,
    name: str,
    kernels: Sequence[str] | None = ("ref",),
    board: Board | None = None,
    ram: int | None = None,
    dump: Path | None = None,
) -> Program:
    """Compile what a model file defines; the arguments are those of compile_model."""
    if isinstance(made, Model):
        return compile_model(made, name, kernels, board, ram, dump)
    return compile_functions(made, name, kernels, board, ram, dump)


def deps_json(files: Iterable[str | Path]) -> str:
    """What a model depends on, as build tools read it."""
    return json.dumps({"schema": 1, "files": sorted(str(f) for f in files)}, indent=1) + "\n"


def write_all(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write every text aside, then rename them all into place. ToolError when the folder cannot be written to."""
    aside = {folder / name: folder / f".{name}.{os.getpid()}.new" for name in texts}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for target in aside:
            if target.is_dir():
                raise ToolError(f"{target} is a folder; remove it, or choose another --out")
        try:
            for temporary, text in zip(aside.values(), texts.values(), strict=True):
                temporary.write_text(text, encoding="utf-8", newline="\n")
            for target, temporary in aside.items():
                os.replace(temporary, target)
        finally:
            for temporary in aside.values():
                temporary.unlink(missing_ok=True)
    except OSError as error:
        raise ToolError(f"cannot write to {folder}: {error.strerror}") from None
    return list(aside)
