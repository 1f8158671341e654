"""A benchmark's program, built for a board without SCons: objects of kernels and of the board's support are cached."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from ..codegen.program import Program
from ..errors import ToolError
from ..host.compiler import first_error
from ..host.object_cache import Objects
from ..kernels.registry import Backends
from ..targets import build_commands, installation
from ..targets.board import BoardSpec
from ..targets.toolchain import install_hint

PROBES = "-DAG_PROBE_HINTS=1"
# Flags that a counted program does not get: it needs no debug information, and its entries must stay functions.
_LEFT_OUT = ("-g", "-flto", "-ffat-lto-objects")


class Builder:
    """Builds programs for one board with the kernels of `tables`."""

    def __init__(self, board: BoardSpec, tables: Backends) -> None:
        self.board, self.tables = board, tables
        own = [f for f in build_commands.compile_flags(board) if not f.startswith(_LEFT_OUT)]
        gcc = build_commands.tool(board, "gcc")
        if shutil.which(gcc) is None:
            raise ToolError(f"board {board.id}: {gcc} is not installed; run: {install_hint(board)}")
        self._gcc = [gcc, *own]
        self._include = [*tables.include_dirs(), *build_commands.include_dirs(board)]
        self.contract = "-ffp-contract=off" if tables.only_ref else "-ffp-contract=fast"

    @cached_property
    def _objects(self) -> Objects:
        tiles = installation.kernels() / "tiles"
        return Objects(self._gcc, self._include, self.board.id, read=(tiles,))

    def executable(self, program: Program, files: Mapping[str, str], folder: Path) -> Path:
        """The executable of `files` (name -> text): the generated C, and NAME_bench.c with main. Raises ToolError."""
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        name = program.name
        model = [self.contract, *build_commands.model_flags(self.board)]
        probes = [] if self.board.is_host else [PROBES]
        objects = [
            self._compiled(folder, f"{name}.c", model),
            self._compiled(folder, f"{name}_params.c", [self.contract]),
            self._compiled(folder, f"{name}_bench.c", [self.contract, *probes]),
        ]
        kernels = folder / f"lib{name}_kernels.a"
        called = [self._objects.of(s.path, *s.cflags) for s in self.tables.sources(program.kernels)]
        if called:
            self._run([build_commands.tool(self.board, "ar"), "rcs", str(kernels), *map(str, called)])
        support = [self._objects.of(path) for path in build_commands.support_sources(self.board)]
        elf = folder / f"{name}.elf"
        words = [*objects, *([kernels] if called else []), *support, "-o", elf]
        flags = build_commands.link_flags(self.board, elf.with_suffix(".map"))
        self._run([self._gcc[0], *map(str, words), *flags, *self.tables.ldflags])
        return elf

    def _compiled(self, folder: Path, source: str, flags: Sequence[str]) -> Path:
        target = (folder / source).with_suffix(".o")
        include = [f"-I{path}" for path in (folder, *self._include)]
        self._run([*self._gcc, *flags, *include, "-c", str(folder / source), "-o", str(target)])
        return target

    def _run(self, command: Sequence[str]) -> None:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ToolError(
                f"{shlex.join(command[:1])} fails for {self.board.id}: {first_error(done.stderr)}"
            )
