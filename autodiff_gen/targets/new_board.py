"""`new-board`: the file and the support folder of a chip that the tree does not have, copied from a similar one. Stdlib
only."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import BoardError
from ..owned_files import write_files
from . import board as boards
from . import installation
from .board_file import read_chain
from .platformio import ARDUINO

MACHINE = "machine.c"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
_LEFT_OUT = ("schema", "name", "inherits", "store", "platformio")

# Instructions to look values up, for each section that is written.
_NOTES = {
    "memory": "CHANGE: the memory map of the reference manual; a region that is not contiguous is a further section",
    "target": "clock, pins and UART of the chip",
    "qemu": "CHANGE: remove this section if QEMU does not have the chip",
    "upload": "CHANGE: the start of flash, and the file of openocd for this family",
}
_STORE = """\
# [store]            # checkpoints in flash, after the program: CHANGE, or leave it out (docs/store.md)
# origin     = 0x0   # of the first erase unit
# slots      = 2
# slot_bytes = 0     # of an erase unit
"""


def new_board(name: str, like: str, out: Path) -> list[Path]:
    """Write NAME.toml and NAME/machine.c into `out`: the memory, flags and code of the board `like`, with a word CHANGE
    wherever another chip differs. The file inherits the file of the core. Returns the paths. Raises BoardError."""
    if not _NAME.fullmatch(name):
        raise BoardError(
            f"{name!r} cannot be the name of a board: begin with a letter, and use letters, digits and _"
        )
    if name in boards.names():
        raise BoardError(f"{name} is a board already; choose another name")
    board = boards.load(like)
    core = next((path for path in board.files if _names_core(path)), None)
    machine = board.target.support / MACHINE
    if core is None or board.target.support.name == ARDUINO or not machine.is_file():
        usable = [b.id for b in map(boards.load, boards.names()) if (b.target.support / MACHINE).is_file()]
        raise BoardError(
            f"board {board.id} has no start-up code to copy; choose another: {', '.join(usable)}"
        )
    paths = [out / f"{name}.toml", out / name / MACHINE]
    for path in paths:
        if os.path.lexists(path):
            raise BoardError(f"{path} exists; remove it, or choose another name or --out")
    head = (
        f"/* CHANGE: copied from {machine.parent.name}/{MACHINE} of autodiff_gen; give it the registers, the clock "
        f"and\n * the pins of {name}. {board.path.name} is the board that it was written for. */\n"
    )
    code = head + machine.read_text(encoding="utf-8")
    return write_files(out, {paths[0].name: _toml(name, board, core), f"{name}/{MACHINE}": code})


def _names_core(path: Path) -> bool:
    """Whether a file describes a core; a family of chips may have one too."""
    own = tomllib.loads(path.read_text(encoding="utf-8"))
    return path.parent.name == "arch" and "core" in own.get("target", {})


def _toml(name: str, board: boards.BoardSpec, core: Path) -> str:
    """The keys that the board has in addition to the file of its core."""
    merged, inherited = read_chain(board.path)[0], read_chain(core)[0]
    own = {k: v for k, v in _difference(merged, inherited).items() if k not in _LEFT_OUT}
    own["target"] = {**own.get("target", {}), "support": f"./{name}"}
    family = core.relative_to(installation.boards()).with_suffix("").as_posix()
    lines = [
        f"# CHANGE: copied from {board.path.name}. Search for CHANGE, and remove the word where you have compared a",
        "# value with the reference manual of the chip.",
        "schema   = 1",
        f'name     = "{name}"      # CHANGE: the chip or board as people know it',
        f'inherits = "{family}"    # CHANGE if the core is another',
        *(f"{key} = {_value(key, value)}" for key, value in own.items() if not isinstance(value, dict)),
        "",
    ]
    for section, part in own.items():
        if isinstance(part, dict):
            lines += [f"# {_NOTES[section]}"] if section in _NOTES else []
            lines += [*_section(section, part), ""]
    return "\n".join([*lines, _STORE])


def _section(name: str, part: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a section; sections in it follow."""
    plain = {key: value for key, value in part.items() if not isinstance(value, dict)}
    if plain:
        yield f"[{name}]"
        yield from (f"{key} = {_value(key, value)}" for key, value in plain.items())
    for key, inner in part.items():
        if isinstance(inner, dict):
            yield from _section(f"{name}.{key}", inner)


def _value(key: str, value: Any) -> str:
    """A value of TOML: strings, numbers and lists are written as in JSON; addresses in hexadecimal."""
    return f"{value:#010x}" if key in ("origin", "address") else json.dumps(value)


def _difference(merged: Mapping[str, Any], inherited: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for key, value in merged.items():
        old = inherited.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            value = _difference(value, old)
            if not value:
                continue
        elif value == old:
            continue
        found[key] = value
    return found
