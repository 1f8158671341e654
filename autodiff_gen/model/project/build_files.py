"""Projects of CMake and make, and sources for another build system: the parts in lib/, and one build file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...targets import build_commands
from .parts import BOARD, RUNTIME, Files, Part, Project, board_part, support_part
from .render import render


@dataclass(frozen=True)
class _Listed:
    """A part as templates see it, with paths in the project; `needs`: other parts that it is linked with."""

    name: str
    sources: list[str]
    folder: str
    flags: str
    include: list[str]
    needs: list[str]


def cmake(project: Project) -> Files:
    """The files of the project. Raises ToolError."""
    project, files = _with_board(project)
    files["CMakeLists.txt"] = _text("CMakeLists.txt", project)
    if not project.board.is_host:
        files["toolchain.cmake"] = _text("toolchain.cmake", project)
    run = _command(project, "cmake --build build --target run")
    return Files(files, {"cmake -S . -B build && cmake --build build": "", **run})


def make(project: Project) -> Files:
    """Likewise."""
    project, files = _with_board(project)
    files["Makefile"] = _text("Makefile", project)
    return Files(files, {"make -j4": "", **_command(project, "make run")})


def plain(project: Project) -> Files:
    """Sources and their flags in README.md, without start-up code: for projects that have their own."""
    port = support_part("ag_port", "plain/*.c")
    project = replace(project, parts=(*project.parts, port))
    notes = render("compile.md", parts=_listed(project), flags=_words(project.cflags))
    return Files(_files(project), {}, notes)


def _with_board(project: Project) -> tuple[Project, dict[str, str]]:
    project = replace(project, parts=(*project.parts, board_part(project.board)))
    return project, _files(project)


def _files(project: Project) -> dict[str, str]:
    files = {f"lib/{part.name}/{name}": text for part in project.parts for name, text in part.files.items()}
    return {"src/main.c": project.main, **files}


def _run(project: Project) -> str:
    """The command that runs the program, without its path; "./" on the host, "" where there is none."""
    if project.board.is_host:
        return "./"
    return "" if project.board.qemu is None else _words(build_commands.qemu_argv(project.board, ""))


def _command(project: Project, run: str) -> dict[str, str]:
    return {run: "run it on the host" if project.board.is_host else "run it in QEMU"} if _run(project) else {}


def _text(template: str, project: Project) -> str:
    *parts, board_part = _listed(project)
    return render(
        template,
        project=project,
        board=project.board,
        parts=parts,
        board_part=board_part,
        all_parts=[*parts, board_part],
        flags=project.cflags,
        ldflags=project.ldflags(f"lib/{BOARD}"),
        prefix=project.board.toolchain.prefix,
        run=_run(project),
    )


def _listed(project: Project) -> list[_Listed]:
    return [_one(part, project.parts[number:]) for number, part in enumerate(project.parts, 1)]


def _one(part: Part, later: Sequence[Part]) -> _Listed:
    """Parts of kernels are linked with those of lower priority."""
    folder = f"lib/{part.name}"
    return _Listed(
        part.name,
        [f"{folder}/{source}" for source in part.sources],
        folder,
        _words(part.cflags),
        [f"{folder}/{name}".rstrip("/") for name in part.include],
        ["ag_headers", *(p.name for p in later if p.sources and p.name not in (RUNTIME, BOARD))],
    )


def _words(words: Sequence[str]) -> str:
    return " ".join(words)
