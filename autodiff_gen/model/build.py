"""`build`: compile a model file to C in a folder; writes all files or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ..codegen.budget_notes import UNLIMITED, budget_notes
from ..codegen.compiler import compile_functions, compile_model
from ..codegen.files import emit
from ..codegen.program import Program
from ..codegen.program_regions import Ram
from ..lowering.pipeline import Dump
from ..owned_files import write_files
from ..progress import doing
from ..targets.board import BoardSpec
from .function import Functions
from .loader import deps_json, load_file
from .model import Model


def build(
    model: str,
    board: BoardSpec,
    out: Path,
    name: str | None = None,
    kernels: Sequence[str] | None = ("ref",),
    ram: Ram = None,
    dump: Path | None = None,
    poison: bool = False,
    note: Callable[[str], None] = lambda line: None,
    force: bool = False,
) -> list[Path]:
    """Write NAME.h, NAME.c, NAME_params.c and NAME.deps.json into `out`; returns their paths. `poison`: as in `emit`;
    `note` takes lines about the cost of the RAM budget; `force`: as in `write_files`.

    When the model cannot be compiled, existing files stay unchanged. Raises AutodiffError.
    """
    file = load_file(model)
    name = name if name is not None else file.name
    dumped = None if dump is None else Dump(dump, force)
    program = compile_file(file.made, name, kernels, board, ram, dumped)
    deps = deps_json(file.files, program.backends.sources(program.kernels))
    paths = write_files(out, {**emit(program, poison=poison), f"{name}.deps.json": deps}, force)

    def without_budget() -> Program:
        return compile_file(file.made, name, kernels, board, UNLIMITED)

    for line in budget_notes(program, without_budget, board.target.clock_hz):
        note(line)
    return paths


def compile_file(
    definition: Model | Functions,
    name: str,
    kernels: Sequence[str] | None = ("ref",),
    board: BoardSpec | None = None,
    ram: Ram = None,
    dump: Dump | None = None,
    must_fit: bool = True,
) -> Program:
    """Compile the model or functions of a model file; the other arguments are the same as compile_model's."""
    with doing(f"compiling {name}" + (f" for {board.id}" if board is not None else "")):
        if isinstance(definition, Model):
            return compile_model(definition, name, kernels, board, ram, dump, must_fit)
        return compile_functions(definition, name, kernels, board, ram, dump, must_fit)
