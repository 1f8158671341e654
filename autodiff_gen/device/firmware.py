"""The firmware of the board link for a model, compiled and linked for a board: the `link.elf` of ./scons."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from ..codegen.board_link_source import link_source
from ..codegen.files import emit
from ..codegen.program import Program
from ..errors import ToolError
from ..host.compiler import first_error
from ..host.object_cache import Objects
from ..kernels.libraries import check_libraries
from ..owned_files import write_files
from ..targets import build_commands
from ..targets.board import BoardSpec
from ..targets.toolchain import install_hint


def build_link(program: Program, board: BoardSpec, elf: Path) -> None:
    """Write the generated C beside `elf`, and link it; objects that were compiled before, for any model, are taken from
    the cache. Raises ToolError."""
    compiler = build_commands.tool(board, "gcc")
    if shutil.which(compiler) is None:
        raise ToolError(f"board {board.id}: {compiler} is not installed; run: {install_hint(board)}")
    check_libraries(program.backends, [compiler])
    write_files(elf.parent, {**emit(program), f"{program.name}_link.c": link_source(program)}, force=True)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        sources = _sources(program, board, compiler, elf.parent)
        objects = list(pool.map(lambda source: source.objects.of(source.path, *source.flags), sources))
    part = elf.with_suffix(f".{os.getpid()}.new")
    words = [compiler, *map(str, objects), "-o", str(part), *build_commands.link_flags(board)]
    done = subprocess.run([*words, *program.backends.ldflags], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ToolError(f"{elf} does not link for {board.id}: {first_error(done.stderr)}")
    os.replace(part, elf)


class _Source(NamedTuple):
    objects: Objects
    path: Path
    flags: Sequence[str] = ()


def _sources(program: Program, board: BoardSpec, compiler: str, folder: Path) -> list[_Source]:
    """The generated C in `folder`, the kernels that it calls, and the code of the board and of the link."""
    backends, system = program.backends, build_commands.include_dirs(board)
    command = [compiler, *build_commands.compile_flags(board)]
    include = [*backends.include_dirs(), *system]
    own = Objects(command, [folder, *include], board.id)
    kernels = Objects(command, include, board.id, [backends.root / "tiles"])
    plain = Objects(command, system, board.id)
    flags = [
        "-ffp-contract=off" if backends.only_ref else "-ffp-contract=fast",
        *build_commands.model_flags(board),
    ]
    return [
        _Source(own, folder / f"{program.name}.c", flags),
        _Source(own, folder / f"{program.name}_params.c", flags),
        _Source(own, folder / f"{program.name}_link.c"),
        *(_Source(kernels, s.path, [*s.cflags, f"-I{s.headers}"]) for s in backends.sources(program.kernels)),
        *(_Source(plain, path) for path in build_commands.support_sources(board)),
        _Source(plain, build_commands.link_main()),
    ]
