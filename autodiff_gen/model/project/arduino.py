"""A library of Arduino. Arduino takes no flags, and has one folder of headers. So flags become pragmas and macros of
each file, and includes of the project's files get paths."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Sequence

from ...errors import ToolError
from ...targets.platformio import ARDUINO, PORT_DEFAULTS
from .render import render
from .source_groups import INCLUDED, Files, Project, support_part

_OPTIMISATION = ("-fno-strict-aliasing", "-fno-math-errno")
_INCLUDE = re.compile(r'^( *#include )"([\w/]+\.\w+)"', re.MULTILINE)


def arduino(project: Project) -> Files:
    """The files of the project. Raises ToolError."""
    if project.board.is_host:
        raise ToolError(
            f"board {project.board.id} is no board of Arduino: choose --board stm32, pico, ..., or --as cmake or make"
        )
    support = support_part("ag_arduino", f"{ARDUINO}/system.cpp", PORT_DEFAULTS)
    (sketch,) = support_part("", f"{ARDUINO}/sketch.cpp").files.values()
    name = project.name
    *kernels, runtime = project.shared
    # A sketch finds only headers of src/: the headers of the models and of the runtime.
    parts = [("", part) for part in (*project.generated, runtime)] + [
        (p.name, p) for p in (*kernels, support)
    ]
    searched = list(dict.fromkeys(folder for folder, _ in parts))
    places = {posixpath.join(folder, file) for folder, part in parts for file in part.files}
    defines = [f for f in project.cflags if f.startswith("-D")]
    files = {}
    for folder, part in parts:
        pragmas = _pragmas([*defines, *_OPTIMISATION, *part.cflags])
        for file, text in part.files.items():
            place = posixpath.join(folder, file)
            folders = [posixpath.dirname(place), folder, *searched]
            head = pragmas if file in part.sources else ""
            files[f"src/{_renamed(place)}"] = head + _with_paths(text, folders, places)
    example = f"examples/{name}/{name}"
    headers = "\n".join(["#include <Arduino.h>", *(f"#include <{n}.h>" for n in project.names)])
    files[f"{example}.ino"] = sketch.replace("#include <Arduino.h>", headers)
    main = _with_paths(project.main, searched, places)
    files[f"{example}_main{project.main_suffix}"] = f"#define main ag_main /* the sketch calls it */\n{main}"
    files["library.properties"] = render("library.properties", project=project)
    command = f"arduino-cli compile --fqbn BOARD --library . {posixpath.dirname(example)}"
    return Files(files, {command: "or copy this folder to the libraries of the Arduino IDE"})


def _renamed(place: str) -> str:
    """The path of a file in src/. A C file that others include gets the suffix .inc: Arduino compiles every .c below
    src/."""
    return re.sub(r"\.c$", ".inc", place) if f"/{INCLUDED}" in f"/{place}" else place


def _pragmas(flags: Sequence[str]) -> str:
    """Flags as the first lines of a file: macros, and the options of gcc's optimiser that a pragma can set."""
    lines = [f"#define {f[2:].replace('=', ' ', 1)}" for f in flags if f.startswith("-D")]
    options = ", ".join(
        f'"{f[2:] if f.startswith("-f") else f[1:]}"' for f in flags if f.startswith(("-f", "-O"))
    )
    pragma = ["#if !defined(__clang__)", f"#pragma GCC optimize({options})", "#endif"]
    return "\n".join([*lines, *pragma, ""])


def _with_paths(text: str, folders: Sequence[str], places: Collection[str]) -> str:
    """The text, with the includes of the project's files as paths relative to src/. folders: where includes are
    searched; places: the project's files."""

    def path(match: re.Match[str]) -> str:
        candidates = (posixpath.join(folder, match[2]) for folder in folders)
        found = next((c for c in candidates if c in places), None)
        return match[0] if found is None else f'{match[1]}"{_renamed(found)}"'

    return _INCLUDE.sub(path, text)
