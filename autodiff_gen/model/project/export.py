"""Write a project into a folder. Files that the user changed since the last export are kept if they are programs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ...codegen.program_regions import Ram
from ...codegen.stack import stack_of
from ...errors import ToolError
from ...targets.board import Board
from ...targets.installation import __version__
from ..build import compile_file, write_all
from ..loader import find_model, load_file
from .arduino import arduino
from .build_files import cmake, make, plain
from .parts import Files, Project, main_of, parts_of
from .platformio import platformio
from .render import render

FORMATS: dict[str, Callable[[Project], Files]] = {
    "platformio": platformio,
    "cmake": cmake,
    "make": make,
    "arduino": arduino,
    "plain": plain,
}
MANIFEST = "export.json"

# What README.md says of files and folders.
_ROWS = (
    ("src/main.c", "the program"),
    ("lib/{name}", "the generated C"),
    ("lib/ag_*", "the kernels that it calls, and the runtime"),
    ("lib/ag_board", "start-up code, linker script, console"),
    ("lib/ag_port", "what the runtime needs of the board: fill in `ag_system_write`"),
    ("platform", "builds for the emulated board with the system's compiler"),
    ("src/{name}.h", "the generated C's interface"),
    ("src/ag_*", "the kernels that it calls, and the runtime"),
    ("examples", "a sketch that calls the program"),
)


class Exported(NamedTuple):
    """The commands to try, with what they do, and the files that were kept."""

    commands: Mapping[str, str]
    kept: Sequence[str]


def export(
    model: str,
    board: Board,
    out: Path,
    name: str | None = None,
    kernels: Sequence[str] | None = ("ref",),
    ram: Ram = None,
    form: str = "platformio",
) -> Exported:
    """Write the project into the folder `out`, which is empty or has one of an earlier export. `form`: of FORMATS. The
    main.c in the model's folder becomes its program. Raises AutodiffError."""
    file = load_file(model)
    program = compile_file(file.made, name if name is not None else file.name, kernels, board, ram)
    main = main_of(program, find_model(model)[0])
    project = Project(program, board, main, parts_of(program, board))
    files = FORMATS[form](project)
    texts = {**files.texts, "README.md": _readme(project, files, form)}
    return Exported(files.commands, write_project(out, texts))


def write_project(out: Path, files: Mapping[str, str]) -> list[str]:
    """Write files by path below `out`, and remove those of the last export that are no longer among them. Returns the
    programs that were kept, as the user has changed them. Raises ToolError."""
    before = _before(out)
    kept = [f for f in files if _is_program(f) and f in before and _changed(out / f, before[f])]
    for old in before.keys() - files.keys():
        if not (_is_program(old) and _changed(out / old, before[old])):
            (out / old).unlink(missing_ok=True)
            _remove_empty((out / old).parent, out)
    folders: dict[Path, dict[str, str]] = {}
    for path, text in files.items():
        if path not in kept:
            folders.setdefault((out / path).parent, {})[Path(path).name] = text
    digests = {path: before[path] if path in kept else _digest(text) for path, text in sorted(files.items())}
    manifest = json.dumps({"generator": f"autodiff_gen {__version__}", "files": digests}, indent=1) + "\n"
    for folder, texts in {out: {}, **folders}.items():
        write_all(folder, {**texts, MANIFEST: manifest} if folder == out else texts)
    return kept


def _remove_empty(folder: Path, out: Path) -> None:
    """Remove the folder, and those below `out` that it is in, as long as they are empty."""
    while folder != out and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


def _before(out: Path) -> dict[str, str]:
    """The files of the last export, with their digests."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return {}
    try:
        return dict(json.loads((out / MANIFEST).read_text(encoding="utf-8"))["files"])
    except (OSError, ValueError, KeyError, TypeError):
        raise ToolError(
            f"{out} contains files and no {MANIFEST} of an export: choose an empty folder"
        ) from None


def _is_program(path: str) -> bool:
    return path == "src/main.c" or path.startswith("examples/")


def _changed(path: Path, digest: str) -> bool:
    return path.is_file() and _digest(path.read_text(encoding="utf-8")) != digest


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _readme(project: Project, files: Files, form: str) -> str:
    rows = [(path.format(name=project.name), what) for path, what in _ROWS]
    shown = [row for row in rows if any(f.startswith(row[0].rstrip("*")) for f in files.texts)]
    folder = next(path.rpartition("/")[0] for path in files.texts if _is_program(path))
    own = "platform" in dict(shown) or form in ("cmake", "make")
    width = max(map(len, files.commands), default=0)
    packages = " ".join([*project.board.toolchain.packages, *(["make"] if form != "platformio" else [])])
    tools = f"`sudo apt-get install {packages}`" if own else ""
    if form == "cmake":
        tools += " and CMake 3.21"
    if form == "platformio" and tools:
        tools += " and `pip install scons==4.11.1`"
    return render(
        "README.md",
        project=project,
        commands=[f"{c:<{width}}    {what}".rstrip() for c, what in files.commands.items()],
        rows=shown,
        tools=tools,
        notes=files.notes,
        stack=stack_of(project.program) if project.board.target.core.startswith("cortex-m") else "",
        samples=f"{folder}/samples.c" if '"ag_samples.h"' in project.main else "",
    )
