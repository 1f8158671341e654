"""Write a project into a folder. Programs that the user changed since the last export are kept; other changed files
stop the export."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ...codegen.program import Program
from ...codegen.program_regions import Ram, budget_of
from ...codegen.stack import stack_of
from ...errors import ToolError, counted
from ...ir.identifiers import of_program
from ...owned_files import is_changed, recorded, write_files
from ...targets.board import BoardSpec
from ...targets.installation import __version__
from ...targets.model_names import check_different
from ..build import compile_file
from ..loader import find_model, load_file
from .arduino import arduino
from .build_files import cmake, make, plain
from .main_program import main_of
from .platformio import platformio
from .render import render
from .source_groups import CXX, Files, Project, parts_of

FORMATS: dict[str, Callable[[Project], Files]] = {
    "platformio": platformio,
    "cmake": cmake,
    "make": make,
    "arduino": arduino,
    "plain": plain,
}
MANIFEST = "export.json"

# The descriptions of files and folders in README.md.
_ROWS = (
    ("src/main{end}", "the program"),
    ("lib/{name}", "the generated C"),
    ("lib/ag_*", "the kernels that it calls, and the runtime"),
    ("lib/ag_board", "start-up code, linker script, console"),
    ("lib/ag_port", "the functions of the board that the runtime calls: fill in `ag_system_write`"),
    ("platform", "builds for the emulated board with the system's compiler"),
    ("src/{name}.h", "the generated C's interface"),
    ("src/ag_*", "the kernels that it calls, and the runtime"),
    ("examples", "a sketch that calls the program"),
)


class Exported(NamedTuple):
    """The commands to try, each with its effect, the files that were kept, and further notes."""

    commands: Mapping[str, str]
    kept: Sequence[str]
    notes: Sequence[str] = ()


def export(
    models: str | Sequence[str],
    board: BoardSpec,
    out: Path,
    names: str | Sequence[str] | None = None,
    kernels: Sequence[str] | None = ("ref",),
    ram: Ram = None,
    form: str = "platformio",
    force: bool = False,
) -> Exported:
    """Write the project into the folder `out`, which is empty or has an earlier export. `form`: a key of FORMATS;
    `names`: other names for the models; `force`: replace changed files that are no programs. A main
    program in the models' folder becomes the project's. Raises AutodiffError."""
    models = [models] if isinstance(models, str) else models
    names = [names] if isinstance(names, str) else names or [find_model(model)[1] for model in models]
    if len(names) != len(models):
        raise ToolError(
            f"--name {','.join(names)}: give {counted(len(models), 'name')}, with commas between them"
        )
    check_different(names)
    made = [load_file(model).made for model in models]
    programs = [compile_file(m, n, kernels, board, ram) for m, n in zip(made, names, strict=True)]
    _check_symbols(programs)
    main, end = main_of(programs, [find_model(model)[0] for model in models])
    parts = parts_of(programs[0], board, *programs[1:])
    count = len(programs)
    project = Project(tuple(programs), board, main, end, parts[:count], parts[count:])
    files = FORMATS[form](project)
    texts = {**files.texts, "README.md": _readme(project, files, form)}
    return Exported(files.commands, write_project(out, texts, force), _notes(programs, board, ram))


def _check_symbols(programs: Sequence[Program]) -> None:
    """Raise ToolError if two programs define a function or macro of one name."""
    owners: dict[str, str] = {}
    for program in programs:
        for symbol in sorted({*of_program(program.name), *(e.c_name for e in program.entries)}):
            if (other := owners.setdefault(symbol, program.name)) != program.name:
                raise ToolError(
                    f"the models {other!r} and {program.name!r} both define {symbol}: give one another name"
                )


def _notes(programs: Sequence[Program], board: BoardSpec, ram: Ram) -> list[str]:
    budget, total = budget_of(board, ram), sum(p.struct_bytes for p in programs)
    if budget is None or total <= budget:
        return []
    sizes = " and ".join(f"{p.struct} {p.struct_bytes}" for p in programs)
    return [
        f"{board.id} has {budget} bytes of RAM for trainers, and these take {sizes}: give each less with --ram, or "
        "store them in a union if only one of them is used at a time"
    ]


def write_project(out: Path, files: Mapping[str, str], force: bool = False) -> list[str]:
    """Write files by path below `out`, and remove files of the last export that are no longer written. Returns the
    programs that were kept because the user has changed them. Raises ToolError for other changed files, unless
    `force`."""
    before = recorded(out, MANIFEST)
    if not force and not before and out.is_dir() and any(out.iterdir()):
        raise ToolError(f"{out} contains files and no {MANIFEST} of an export: choose an empty folder")
    kept = [f for f in files if _is_program(f) and _has_own(out, f, before)]
    own = list(filter(_is_program, before))
    heading = {"generator": f"autodiff_gen {__version__}"}
    write_files(out, files, force, MANIFEST, kept, own, heading)
    return kept


def _is_program(path: str) -> bool:
    return path.startswith(("src/main.", "examples/"))


def _has_own(out: Path, path: str, before: Mapping[str, str]) -> bool:
    """Whether the user has changed the program, or has written it in another language: main.cpp in place of main.c."""
    if is_changed(out, path, before.get(path, "")):
        return True
    others = ((out / path).with_suffix(end) for end in (".c", *CXX))
    return any(o.is_file() and o.relative_to(out).as_posix() not in before for o in others if o != out / path)


def _readme(project: Project, files: Files, form: str) -> str:
    rows = [
        (path.format(name=name, end=project.main_suffix), what)
        for path, what in _ROWS
        for name in (project.names if "{name}" in path else [""])
    ]
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
        stacks=_stacks(project),
        samples=f"{folder}/samples.c" if '"ag_samples.h"' in project.main else "",
    )


def _stacks(project: Project) -> list[str]:
    """The stack that the functions of each program need, in words."""
    if not project.board.target.core.startswith("cortex-m"):
        return []
    found = [(p.name, stack_of(p)) for p in project.programs]
    return [f"{name}: {said}" if len(found) > 1 else said for name, said in found if said]
