"""Projects of CMake and make, and sources for another build system: the parts in lib/, and one build file."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...errors import ToolError
from ...targets import build_commands
from ...targets.installation import __version__
from .render import render
from .source_groups import BOARD, CXX, RUNTIME, Files, Project, SourceGroup, board_part, support_part


@dataclass(frozen=True)
class _Listed:
    """A part as templates see it, with paths in the project; `model`: the name of the model whose C it is, or empty;
    `needs`: other parts that it is linked with."""

    name: str
    model: str
    sources: list[str]
    folder: str
    flags: tuple[str, ...]
    include: list[str]
    needs: list[str]


# Targets that CMake makes or reserves (its policy CMP0037), and libraries of a linker.
_RESERVED = """
    all all_build clean continuous depend edit_cache experimental help install nightly nightlymemorycheck package
    package_source preinstall rebuild_cache run_tests test zero_check
    c gcc m nosys pthread
"""


def cmake(project: Project) -> Files:
    """The files of the project. Raises ToolError."""
    project, files = _with_board(project)
    words = [*project.cflags, *project.ldflags(""), *(f for part in project.parts for f in part.cflags)]
    if split := next((word for word in words if ";" in word), None):
        raise ToolError(
            f"board {project.board.id}: CMake splits {split!r} at the ;: export it with --as make"
        )
    files["CMakeLists.txt"] = _text(
        "CMakeLists.txt",
        project,
        built_as=_built_as(project),
        plain_names=[name for name in project.names if name.lower() not in _RESERVED.split()],
    )
    if not project.board.is_host:
        files["toolchain.cmake"] = _text("toolchain.cmake", project)
    run = _command(project, "cmake --build build --target run")
    return Files(files, {"cmake -S . -B build && cmake --build build": "", **run})


def _built_as(project: Project) -> str:
    """The properties that two exports must have in common for their kernels and runtime to be the same: in words, and a
    digest of the flags of every C file, the headers of kernels, and the runtime."""
    shared = hashlib.sha256(" ".join(project.cflags).encode())
    for part in project.shared[:-1]:
        for name in sorted(n for n in part.files if n.endswith(".h") or part.name == RUNTIME):
            shared.update(f"{part.name}/{name}\n{part.files[name]}".encode())
    kernels = ",".join(b.name for b in project.programs[0].backends.backends)
    return (
        f"{project.board.id} with kernels {kernels} by autodiff_gen {__version__} ({shared.hexdigest()[:8]})"
    )


def make(project: Project) -> Files:
    """The files of the project. Raises ToolError."""
    project, files = _with_board(project)
    files["Makefile"] = _text("Makefile", project)
    return Files(files, {"make -j4": "", **_command(project, "make run")})


def plain(project: Project) -> Files:
    """Sources and their flags in README.md, without start-up code: for projects that have their own."""
    port = support_part("ag_port", "plain/*.c")
    project = replace(project, shared=(*project.shared, port))
    notes = render("compile.md", parts=_listed(project), flags=_words(project.cflags))
    return Files(_files(project), {}, notes)


def _with_board(project: Project) -> tuple[Project, dict[str, str]]:
    project = replace(project, shared=(*project.shared, board_part(project.board)))
    return project, _files(project)


def _files(project: Project) -> dict[str, str]:
    files = {f"lib/{part.name}/{name}": text for part in project.parts for name, text in part.files.items()}
    return {f"src/main{project.main_suffix}": project.main, **files}


def _run(project: Project) -> str | list[str]:
    """The command that runs the program, without its path; "./" on the host, empty if there is none."""
    if project.board.is_host:
        return "./"
    return [] if project.board.qemu is None else build_commands.qemu_argv(project.board, "")[:-1]


def _command(project: Project, run: str) -> dict[str, str]:
    return {run: "run it on the host" if project.board.is_host else "run it in QEMU"} if _run(project) else {}


def _text(template: str, project: Project, **own: Any) -> str:
    *parts, board_part = _listed(project)
    return render(
        template,
        project=project,
        board=project.board,
        parts=parts,
        board_part=board_part,
        all_parts=[*parts, board_part],
        flags=project.cflags,
        cxxflags=project.cxxflags,
        cxx_ends=CXX,
        ldflags=project.ldflags(f"lib/{BOARD}"),
        prefix=project.board.toolchain.prefix,
        run=_run(project),
        **own,
    )


def _listed(project: Project) -> list[_Listed]:
    """Parts of models are linked with all kernels, parts of kernels with kernels of lower priority."""
    models, kernels = len(project.generated), project.shared
    return [
        _one(part, part.name if k < models else "", kernels[max(0, k + 1 - models) :])
        for k, part in enumerate(project.parts)
    ]


def _one(part: SourceGroup, model: str, later: Sequence[SourceGroup]) -> _Listed:
    folder = f"lib/{part.name}"
    return _Listed(
        f"model_{part.name}" if model else part.name,
        model,
        [f"{folder}/{source}" for source in part.sources],
        folder,
        part.cflags,
        [f"{folder}/{name}".rstrip("/") for name in part.include],
        ["ag_headers", *(p.name for p in later if p.sources and p.name not in (RUNTIME, BOARD))],
    )


def _words(words: Sequence[str]) -> str:
    return " ".join(words)
