"""Firmware for tests: generated C and a main program, compiled for a board, run in QEMU or on the host.

What one pytest-xdist worker has made is shared with the others (`once`).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import scons_object_cache
import scons_tree
from checkout import NOT_COPIED, ROOT, C
from elftools.elf.elffile import ELFFile
from objects_once import objects

from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.kernels import registry
from autodiff_gen.targets import board, build_commands

REF = ("ref",)


def boards():
    """Names of the boards that QEMU runs; they and the host make all boards."""
    return [name for name in board.names() if board.load(name).qemu is not None]


def once(factory, name, make):
    """The folder that `make(folder)` has filled, once per test session, whichever worker comes first."""
    base = factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, aside = shared / f"firmware-{name}", shared / f"firmware-{name}.part"
    with contextlib.ExitStack() as stack:
        handle = stack.enter_context(open(shared / f"firmware-{name}.lock", "w"))
        fcntl.flock(handle, fcntl.LOCK_EX)
        if not folder.exists():
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir()
            make(aside)
            aside.rename(folder)
    return folder


def generate(model, folder):
    """The model's C under the name `model`, served by `ref` kernels."""
    for name, text in emit(compile_model(model, "model", REF)).items():
        (folder / name).write_text(text)


def link(name, folder, main, *, cc=None, flags=()):
    """Compile tests/c/<main>.c with the C in `folder` under the strict flags; path of the program.

    `cc` replaces the board's gcc, `flags` are added after the board's own; neither is for the board's support.
    """
    b = board.load(name)
    tables = registry.load(REF, features=b.target.features)
    text = (folder / "model.c").read_text()
    called = {k.source for backend in tables.backends for k in backend.kernels if f"{k.symbol}(" in text}
    elf = folder / f"{main}.elf"
    kernels = [s.path for s in tables.sources() if s.path in called]
    own = [folder / "model.c", folder / "model_params.c", C / f"{main}.c"]
    return program(b, tables, kernels, own, elf, cc=cc, flags=flags, include=(folder, C))


def support_objects(b, console="auto"):
    """Objects of the board's support, under its own flags and the strict ones: all programs of a session share them."""
    compiler = [
        build_commands.tool(b, "gcc"),
        *build_commands.compile_flags(b, console=console),
        *build_commands.STRICT_FLAGS,
        "-g0",  # nothing here reads debug information
        *(f"-I{folder}" for folder in build_commands.include_dirs(b)),
    ]
    return objects(compiler, build_commands.support_sources(b))


def program(
    b: board.BoardSpec,
    tables: registry.Backends,
    kernels: Sequence[Path],
    own: Sequence[Path],
    elf: Path,
    *,
    cc: str | None,
    flags: Sequence[str],
    include: Sequence[Path],
) -> Path:
    """`elf`, linked of the sources `kernels`, the board's support, and `own`; only `own` sees the folders `include`."""
    compiler = [
        cc or build_commands.tool(b, "gcc"),
        *build_commands.compile_flags(b),
        *build_commands.STRICT_FLAGS,
        "-g0",  # nothing here reads debug information
        "-ffp-contract=off",  # every kernel is of `ref`, so all of the program is built as that demands
        *flags,
        *(f"-I{path}" for path in (*tables.include_dirs(), *build_commands.include_dirs(b))),
    ]
    command = [
        *compiler,
        *(f"-I{path}" for path in include),
        *map(str, own),
        *objects(compiler, kernels),
        *support_objects(b),
        *("-o", str(elf)),
        *build_commands.link_flags(b, elf.with_suffix(".map")),
    ]
    call(command, elf.parent, 120)
    return elf


def run(name: str, elf: Path, folder: Path, timeout: int = 100) -> str:
    """The program's output; it runs in `folder`, where its data is, and must exit with 0 in `timeout` seconds."""
    return call(build_commands.qemu_argv(board.load(name), elf), folder, timeout)


def call(command: Sequence[str], folder: Path, timeout: int, env: Mapping[str, str] | None = None) -> str:
    """The output of a command in `folder`; it must exit with 0 in `timeout` seconds."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
    assert done.returncode == 0, (
        f"{shlex.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    )
    return done.stdout


def copy_of_the_project(folder):
    """What SCons needs, in a folder where no other build runs."""
    for part in scons_tree.PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=NOT_COPIED)
        else:
            shutil.copy2(source, folder / part)
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=NOT_COPIED)


def scons(tree, *words, timeout=300):
    """Run SCons in a copy of the project, as `./scons` does; its output."""
    words = [sys.executable, "-P", "-m", "SCons", "-Q", *words]
    return call(words, tree, timeout, scons_object_cache.environment())


def symbols(elf):
    """Name -> (address, bytes) of the program's symbols."""
    with open(elf, "rb") as file:
        table = ELFFile(file).get_section_by_name(".symtab")
        return {
            s.name: (s["st_value"], s["st_size"])
            for s in table.iter_symbols()
            if s["st_shndx"] != "SHN_UNDEF"
        }


def sections(elf):
    """Name -> (address, bytes) of the symbols that take memory on the board."""
    with open(elf, "rb") as file:
        return {
            s.name: (s["sh_addr"], s["sh_size"])
            for s in ELFFile(file).iter_sections()
            if s["sh_flags"] & 2 and s["sh_size"]
        }
