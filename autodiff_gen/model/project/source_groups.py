"""The parts of a project for all build tools: a part is a folder of C files compiled with the same flags."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ...codegen.files import emit
from ...codegen.program import Program
from ...errors import ToolError
from ...kernels.callees import included
from ...kernels.table import Backend
from ...reading import regular
from ...reading.limits import TEXT
from ...targets import build_commands, installation
from ...targets.board import BoardSpec
from ...targets.platformio import ARDUINO

INCLUDED = "tiles/"  # the folder of a part whose C files are included by others, not compiled
CXX = (".cpp", ".cc", ".cxx")
RUNTIME, BOARD = "ag_runtime", "ag_board"
_LINKER_SCRIPT = "common/firmware.ld"


class Files(NamedTuple):
    """A project's files: `texts` by path; `commands` to try, each with its effect; `notes`: more text for README.md."""

    texts: dict[str, str]
    commands: dict[str, str]
    notes: str = ""


@dataclass(frozen=True)
class SourceGroup:
    """Files of one folder: relative path -> text. `cflags` follow the project's."""

    name: str
    files: Mapping[str, str]
    cflags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_names(self.files)

    @property
    def sources(self) -> tuple[str, ...]:
        """The files to compile."""
        return tuple(
            f for f in sorted(self.files) if f.endswith((".c", ".cpp")) and not f.startswith(INCLUDED)
        )

    @property
    def include(self) -> tuple[str, ...]:
        """Its folders with headers that other parts include, relative to its own; "" is itself."""
        folders = (f.rpartition("/")[0] for f in sorted(self.files) if f.endswith(".h"))
        return tuple(dict.fromkeys(f for f in folders if f"{f}/" != INCLUDED))


@dataclass(frozen=True)
class Project:
    """Programs for a board. `main`: the text of the main program; `main_suffix`: the suffix of its file; `generated`:
    the C of each program; `shared`: the kernels by priority, the runtime, and the code of the board if the project has
    any."""

    programs: tuple[Program, ...]
    board: BoardSpec
    main: str
    main_suffix: str
    generated: tuple[SourceGroup, ...]
    shared: tuple[SourceGroup, ...]

    @property
    def names(self) -> list[str]:
        return [program.name for program in self.programs]

    @property
    def name(self) -> str:
        return "_".join(self.names)

    @property
    def parts(self) -> tuple[SourceGroup, ...]:
        return (*self.generated, *self.shared)

    @property
    def cflags(self) -> list[str]:
        """Flags of every C file."""
        return build_commands.compile_flags(self.board)

    @property
    def cxxflags(self) -> list[str]:
        """Flags of C++, for a main program in C++."""
        return build_commands.cxx_flags(self.board, self.cflags)

    def ldflags(self, scripts: str) -> list[str]:
        """Flags of the linker, after the objects; `scripts`: the path of the part with the board's code."""
        flags = [*build_commands.link_flags(self.board), *self.programs[0].backends.ldflags]
        return [f"-T{scripts}/{_LINKER_SCRIPT}" if f.startswith("-T") else f for f in flags]


def check_names(paths: Iterable[str]) -> None:
    """Raise ToolError for a path that a build file or a shell would read as more than a name."""
    if wrong := next((path for path in paths if not re.fullmatch(r"[\w./ +-]+", path)), None):
        raise ToolError(f"{wrong!r} cannot be a file of a project: rename it to letters, digits and . _ + -")


def parts_of(program: Program, board: BoardSpec, *others: Program) -> tuple[SourceGroup, ...]:
    """The generated C of the programs, the kernels that they call and the runtime. Raises ToolError."""
    programs = (program, *others)
    backends = program.backends.backends
    for backend in backends:
        if backend.external:
            raise ToolError(
                f"backend {backend.name!r} takes sources from {backend.external[0].parent}, "
                "which an exported project cannot carry: leave it out of kernels="
            )
    contract = "-ffp-contract=off" if program.backends.only_ref else "-ffp-contract=fast"
    flags = (contract, *build_commands.model_flags(board))
    runtime = SourceGroup(RUNTIME, _texts([installation.runtime()], "*.[ch]"))
    return (
        *(SourceGroup(p.name, emit(p), flags) for p in programs),
        *(_kernels(programs, backend) for backend in backends),
        runtime,
    )


def board_part(board: BoardSpec) -> SourceGroup:
    """Start-up code, linker script and the code of the chip; on the host, its console. Raises ToolError."""
    if board.target.support.name == ARDUINO:
        raise ToolError(
            f"board {board.id}: its start-up code is Arduino's: export it with --as arduino or platformio, "
            "or with --as plain, without start-up code"
        )
    folders = [f for f in build_commands.include_dirs(board) if f != installation.runtime()]
    folders.append(board.target.support)
    files = {
        f"{folder.name}/{name}": text
        for folder in folders
        for name, text in _texts([folder], "*.[chS]").items()
    }
    if not board.is_host:
        files[_LINKER_SCRIPT] = regular.read_text(build_commands.linker_script(board), ToolError, TEXT)
    return SourceGroup(BOARD, files)


def support_part(name: str, *patterns: str) -> SourceGroup:
    """Files of boards/support as a part: those that match the patterns."""
    support = installation.boards() / "support"
    return SourceGroup(
        name,
        {p.name: regular.read_text(p, ToolError, TEXT) for q in patterns for p in sorted(support.glob(q))},
    )


def _kernels(programs: Sequence[Program], backend: Backend) -> SourceGroup:
    """The kernels of a backend that the programs call, the files that they share, and all headers; the headers of the
    contract go with `ref`."""
    backends = programs[0].backends
    root, last = backends.root, backend.name == backends.backends[-1].name
    files = _texts([backend.folder, *([root] if last else [])], "*.h")
    symbols = backends.with_callees(kernel for p in programs for kernel in p.kernels)
    called = {k.source for k in backend.kernels if k.symbol in symbols}
    sources = sorted({*called, *(backend.shared if called else ())}, key=lambda path: path.name)
    files |= {path.name: regular.read_text(path, ToolError, TEXT) for path in sources}
    headers = {backend.folder / f.header for f in backend.functions}
    names = included(root, backend.folder, [*sources, *sorted(headers)]).items()
    files |= {name: regular.read_text(path, ToolError, TEXT) for name, path in sorted(names) if "/" in name}
    cflags = next((k.cflags for k in backend.kernels), ())
    return SourceGroup(f"ag_{backend.name}", files, cflags)


def _texts(folders: Iterable[Path], pattern: str) -> dict[str, str]:
    return {
        path.name: regular.read_text(path, ToolError, TEXT)
        for folder in folders
        for path in sorted(folder.glob(pattern))
    }
