"""`export`: a self-contained PlatformIO project: the generated C, the kernels that it calls, the runtime, and for an
emulated board the platform that builds and runs it. Nothing in it refers to this tree."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..codegen.program import Program
from ..codegen.regions import Ram
from ..errors import ToolError
from ..kernels.table import Backend
from ..model.build import write_all
from ..targets import installation, platformio
from ..targets.board import Board
from ..targets.installation import __version__

PORT = "socket://127.0.0.1:5400"


def export(
    model: str,
    board: Board,
    out: Path,
    name: str | None = None,
    kernels: Sequence[str] | None = ("ref",),
    ram: Ram = None,
) -> list[str]:
    """Write the project into the folder `out`; returns the names of its environments, the default first. The main.c in
    the model's folder becomes its program. Raises AutodiffError."""
    from ..codegen.files import emit
    from ..model.build import compile_file
    from ..model.loader import find_model, load_file

    environments = _environments(board)
    file = load_file(model)
    name = name if name is not None else file.name
    program = compile_file(file.made, name, kernels, board, ram)
    for backend in program.backends.backends:
        if backend.external:
            raise ToolError(
                f"backend {backend.name!r} takes sources from {backend.external[0].parent}, "
                "which an exported project cannot carry: leave it out of kernels="
            )
    if out.exists() and any(out.iterdir()) and not (out / "platformio.ini").is_file():
        raise ToolError(f"{out} contains files and no platformio.ini: choose an empty folder")
    for part in ("lib", "platform"):
        shutil.rmtree(out / part, ignore_errors=True)
    contract = "-ffp-contract=off" if program.backends.only_ref else "-ffp-contract=fast"
    write_all(
        out / "lib" / name, {**emit(program), "library.json": _library(name, [contract], _needs(program))}
    )
    for backend in program.backends.backends:
        _copy_kernels(program, backend, out / "lib" / f"ag_{backend.name}")
    _copy(installation.runtime(), out / "lib" / "ag_runtime", "*.[ch]")
    write_all(out / "lib" / "ag_runtime", {"library.json": _library("ag_runtime", [], ())})
    if board.platformio:
        _copy(installation.boards() / "support" / platformio.ARDUINO, out / "lib" / "ag_arduino", "*.cpp")
        manifest = _library("ag_arduino", [], ("ag_runtime",), frameworks="arduino")
        write_all(out / "lib" / "ag_arduino", {"library.json": manifest})
    if board.qemu is not None:
        _copy_platform(board, out / "platform")
    main = find_model(model)[0].with_name("main.c")
    write_all(
        out, {"platformio.ini": _ini(name, environments), "README.md": _readme(program, board, environments)}
    )
    write_all(out / "src", {"main.c": main.read_text("utf-8") if main.is_file() else _empty_main(name)})
    return list(environments)


def _environments(board: Board) -> dict[str, dict[str, str]]:
    environments: dict[str, dict[str, str]] = {}
    if board.qemu is not None:
        environments[f"qemu_{board.id}"] = {
            "platform": "symlink://${PROJECT_DIR}/platform",
            "board": board.id,
            "build_src_filter": "+<*> -<samples.c>",
            "monitor_port": PORT,
        }
    own = board.platformio
    if own:
        environments[own["board"]] = {
            "platform": own["platform"],
            "board": own["board"],
            "framework": own["framework"],
            "build_src_flags": "-Dmain=ag_main",
            "monitor_speed": "115200",
        }
    if not environments:
        raise ToolError(
            f"board {board.id}: {board.path} has neither [qemu] nor [platformio], so PlatformIO cannot build for it"
        )
    return environments


# ---- files


def _copy(source: Path, target: Path, pattern: str) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.glob(pattern)):
        shutil.copy(path, target / path.name)


def _copy_kernels(program: Program, backend: Backend, target: Path) -> None:
    """Copy the kernels of a backend that the program calls, the files that they share, and all headers; those of the
    contract go with `ref`."""
    _copy(backend.folder, target, "*.h")
    if backend is program.backends.backends[-1]:
        _copy(program.backends.root, target, "*.h")
    called = {k.source for k in program.kernels if k.backend == backend.name}
    sources = sorted({*called, *(backend.shared if called else ())}, key=lambda path: path.name)
    for source in sources:
        shutil.copy(source, target / source.name)
    for name in sorted(_included(program.backends.root, sources)):
        (target / name).parent.mkdir(exist_ok=True)
        shutil.copy(program.backends.root / name, target / name)
    flags = next((list(k.cflags) for k in backend.kernels), [])
    write_all(target, {"library.json": _library(target.name, flags, ())})


def _included(root: Path, sources: Sequence[Path]) -> set[str]:
    """Files in folders of `root` that the sources include, directly or through others, relative to `root`."""
    found: set[str] = set()
    pending = list(sources)
    while pending:
        text = pending.pop().read_text(encoding="utf-8")
        for name in re.findall(r'^ *#include "(\w+/\w+\.[ch])"', text, re.MULTILINE):
            if name not in found and (root / name).is_file():
                found.add(name)
                pending.append(root / name)
    return found


def _copy_platform(board: Board, target: Path) -> None:
    source, ignored = installation.platformio(), shutil.ignore_patterns("__pycache__")
    for part in ("builder", platformio.ARDUINO):
        shutil.copytree(source / part, target / part, ignore=ignored)
    _copy(source, target, "platform.*")
    _copy(installation.runtime(), target / "runtime", "*.[ch]")
    support = installation.boards() / "support"
    assert board.target.startup is not None  # boards without it were rejected before
    for folder in (support / "common", board.target.startup, board.target.support):
        shutil.copytree(folder, target / "support" / folder.name, ignore=ignored)
    write_all(target / "boards", {f"{board.id}.json": platformio.manifest_text(board)})


# ---- texts


def _needs(program: Program) -> tuple[str, ...]:
    return (*(f"ag_{b.name}" for b in program.backends.backends), "ag_runtime", "ag_arduino")


def _library(name: str, flags: Sequence[str], needs: Iterable[str], frameworks: str = "*") -> str:
    data: dict[str, Any] = {
        "name": name,
        "version": __version__,
        "frameworks": frameworks,
        "platforms": "*",
        "dependencies": [{"name": n} for n in needs],
        "build": {
            "flags": ["-fno-strict-aliasing", "-fno-math-errno", *flags],
            "srcFilter": "+<*> -<tiles/>",  # files there are included
        },
    }
    return json.dumps(data, indent=2) + "\n"


def _ini(name: str, environments: dict[str, dict[str, str]]) -> str:
    lines = [
        f"; {name}: a self-contained project; README.md lists the commands.",
        "",
        "[platformio]",
    ]
    lines += [f"default_envs = {next(iter(environments))}", "", "[env]", f"lib_deps = {name}"]
    for env, options in environments.items():
        lines += ["", f"[env:{env}]", *(f"{k} = {v}" for k, v in options.items())]
    return "\n".join(lines) + "\n"


def _empty_main(name: str) -> str:
    return f'#include "{name}.h"\n\nint main(void) {{\n    return 0;\n}}\n'


def _readme(program: Program, board: Board, environments: dict[str, dict[str, str]]) -> str:
    name, commands = program.name, []
    for env in environments:
        if env.startswith("qemu_"):
            commands += [f"    pio run -e {env} -t run                  build it, and run it in QEMU to its end",
                         f"    pio run -e {env} -t upload -t monitor    start it, and print its output"]  # fmt: skip
        else:
            commands.append(
                f"    pio run -e {env} -t upload -t monitor    on the real board; nobody has run it yet"
            )
    parts = [
        f"# {name} on {board.name}", "",
        f"C that trains `{name}` on the board, generated by autodiff_gen {__version__}; it belongs to you. "
        "Python is not needed to build it.", "",
        *commands, "",
        "| folder | what it is |", "|---|---|",
        "| `src` | the program |",
        f"| `lib/{name}` | the generated C: {program.struct_bytes:,} bytes of RAM for `{program.struct}` |",
        "| `lib/ag_*` | the kernels that it calls, and the runtime |",
    ]  # fmt: skip
    if board.qemu is not None:
        packages = " ".join(board.toolchain.packages)
        parts += ["| `platform` | builds for the emulated board with the system's compiler |", "",
                  f"The emulated board needs `sudo apt-get install {packages}`",
                  "and `pip install scons==4.11.1`."]  # fmt: skip
    return "\n".join([*parts, ""])
