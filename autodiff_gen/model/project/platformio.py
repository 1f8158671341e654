"""A project of PlatformIO: a library for each part, and for an emulated board the platform that builds and runs it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ...errors import ToolError
from ...reading import regular
from ...reading.limits import TEXT
from ...targets import installation
from ...targets.board import BoardSpec
from ...targets.installation import __version__
from ...targets.platformio import ARDUINO, PORT_DEFAULTS, for_a_shell, manifest_text
from .source_groups import Files, Project, SourceGroup, check_names, support_part

PORT = "socket://127.0.0.1:5400"


def platformio(project: Project) -> Files:
    """The files of the project; commands of the default environment are first. Raises ToolError."""
    board = project.board
    environments = _environments(board)
    files = {
        "platformio.ini": _ini(project.names, environments),
        f"src/main{project.main_suffix}": project.main,
    }
    *kernels, runtime = project.shared
    needs = (*(part.name for part in (*kernels, runtime)), "ag_arduino")
    # PlatformIO sets the flags of the whole program; of a part's flags only the first, -ffp-contract, is given.
    for part in project.generated:
        files |= _library(part, part.cflags[:1], needs)
    for part in (*kernels, runtime):
        files |= _library(part, part.cflags if part is not runtime else (), ())
    if board.platformio:
        arduino = support_part("ag_arduino", f"{ARDUINO}/*.cpp", PORT_DEFAULTS)
        files |= _library(arduino, (), ("ag_runtime",), frameworks="arduino")
    if board.qemu is not None:
        files |= _platform(board)
    commands = {}
    for env in environments:
        upload = f"pio run -e {env} -t upload -t monitor"
        if env.startswith("qemu_"):
            commands[f"pio run -e {env} -t run"] = "build it, and run it in QEMU to its end"
            commands[upload] = "start it, and print its output"
        else:
            commands[upload] = "on the real board; nobody has run it yet"
    return Files(files, commands)


def _environments(board: BoardSpec) -> dict[str, dict[str, str]]:
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
        for key in ("platform", "board", "framework"):
            if not isinstance(own.get(key), str):
                raise ToolError(f"board {board.id}: platformio.{key} is missing in {board.path}")
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


def _platform(board: BoardSpec) -> dict[str, str]:
    """The files of the platform that builds for the board with the system's compiler, and runs QEMU."""
    source = installation.platformio()
    files = {path.name: path for path in source.glob("platform.*")}
    for part in ("builder", ARDUINO):
        files |= _below(source / part, part)
    files |= {f"runtime/{path.name}": path for path in installation.runtime().glob("*.[ch]")}
    support = installation.boards() / "support"
    assert board.target.startup is not None  # boards without it were rejected before
    for folder in (support / "common", board.target.startup, board.target.support):
        files |= _below(folder, f"support/{folder.name}")
    texts = {
        f"platform/{name}": regular.read_text(path, ToolError, TEXT) for name, path in sorted(files.items())
    }
    return {**texts, f"platform/boards/{board.id}.json": manifest_text(board)}


def _below(folder: Path, name: str) -> dict[str, Path]:
    found = [p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    for path in (p for p in found if not p.resolve().is_relative_to(folder.resolve())):
        raise ToolError(f"{path} is a link to a file outside of its folder: put the file there")
    files = {f"{name}/{path.relative_to(folder).as_posix()}": path for path in found}
    check_names(files)
    return files


def _library(
    part: SourceGroup, flags: Iterable[str], needs: Iterable[str], frameworks: str = "*"
) -> dict[str, str]:
    data: dict[str, Any] = {
        "name": part.name,
        "version": __version__,
        "frameworks": frameworks,
        "platforms": "*",
        "dependencies": [{"name": n} for n in needs],
        "build": {
            "flags": for_a_shell(["-fno-strict-aliasing", "-fno-math-errno", *flags]),
            "srcFilter": "+<*> -<tiles/>",  # files there are included
        },
    }
    texts = {f"lib/{part.name}/{name}": text for name, text in part.files.items()}
    return {**texts, f"lib/{part.name}/library.json": json.dumps(data, indent=2) + "\n"}


def _ini(names: Sequence[str], environments: dict[str, dict[str, str]]) -> str:
    lines = [
        f"; {' and '.join(names)}: a self-contained project; README.md lists the commands.",
        "",
        "[platformio]",
    ]
    lines += [
        f"default_envs = {next(iter(environments))}",
        "",
        "[env]",
        "lib_deps =",
        *(f"    {name}" for name in names),
    ]
    for env, options in environments.items():
        lines += ["", f"[env:{env}]", *(f"{k} = {v}" for k, v in options.items())]
    return "\n".join(lines) + "\n"
