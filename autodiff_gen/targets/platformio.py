"""Board profiles for PlatformIO: the manifests of the platform `platformio/`, and the profile for each of PlatformIO's
board ids. Stdlib only."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import BoardError
from . import board as boards
from . import build_commands
from .board import BoardSpec
from .schema import near

ARDUINO = "arduino"  # the support folder of boards whose start-up code is the framework's
PORT_DEFAULTS = "plain/defaults.c"  # in boards/support: runtime functions that such a folder lacks
PLATFORM = "qemuarm"  # the name of the local platform, in platformio/platform.json
_C_ONLY = "-std=c99"
_BUILDERS_OWN = ("-T", "-lm", "-Wl,--print-memory-usage")  # paths, and sizes that PlatformIO prints itself


def emulated() -> list[str]:
    """Names of the tree's boards that QEMU emulates; each is a board of the local platform with the same id."""
    return [name for name in boards.names() if boards.load(name).qemu is not None]


def for_a_shell(words: Iterable[str]) -> list[str]:
    """Words as a list. Raises BoardError for one that PlatformIO's substitution or its shell would change."""
    listed = list(words)
    if wrong := next((word for word in listed if shlex.quote(word) != word), None):
        raise BoardError(
            f"{wrong!r} cannot be a flag in PlatformIO, which gives it to a shell: export with --as make"
        )
    return listed


def manifest(board: BoardSpec) -> dict[str, Any]:
    """The board's manifest in the local platform: flags, memory and the emulator's command line, without paths."""
    flash, ram = board.region("flash"), board.region("ram")
    startup = board.target.startup
    assert flash is not None and ram is not None and board.qemu is not None and startup is not None
    return {
        "name": f"{board.name} in QEMU",
        "vendor": "QEMU",
        "url": "https://www.qemu.org/docs/master/system/target-arm.html",
        "frameworks": ["arduino"],
        "build": {
            "cpu": board.target.core,
            "mcu": board.qemu.machine,
            "prefix": "".join(for_a_shell(p for p in [board.toolchain.prefix] if p)),
            "packages": " ".join(board.toolchain.packages),
            "startup": startup.name,
            "support": board.target.support.name,
            "ccflags": for_a_shell(f for f in build_commands.compile_flags(board) if f != _C_ONLY),
            "linkflags": for_a_shell(
                f for f in build_commands.link_flags(board) if not f.startswith(_BUILDERS_OWN)
            ),
        },
        "qemu": {"command": build_commands.qemu_machine(board)},
        "upload": {"maximum_ram_size": ram.bytes, "maximum_size": flash.bytes},
    }


def manifest_text(board: BoardSpec) -> str:
    return json.dumps(manifest(board), indent=2) + "\n"


def profile_of(board_id: str) -> str:
    """The profile for one of PlatformIO's board ids: the profile of that name, otherwise the one that lists it in
    [platformio] boards. Raises BoardError."""
    own = boards.names()
    if board_id in own:
        return board_id
    listed: dict[str, str] = {}
    for name in own:
        for served in boards.load(name).platformio.get("boards", ()):
            listed.setdefault(served, name)
    if board_id not in listed:
        raise BoardError(
            f"no board profile serves the board {board_id!r}: set custom_autodiff_board to a profile's name or to the "
            f"path of your own .toml file{near(board_id, {*listed, *own})}"
        )
    return listed[board_id]


def check_profile(board: BoardSpec, board_id: str, published: Mapping[str, Any], ram: int | None) -> None:
    """Raise BoardError if a profile has more memory than PlatformIO's manifest of the board, or another core.
    `published`: the manifest; `ram`: the user's RAM budget of the trainer in bytes."""
    if board.is_host:
        return
    upload, build = published.get("upload", {}), published.get("build", {})
    for kind, key in (("ram", "maximum_ram_size"), ("flash", "maximum_size")):
        region, limit = board.region(kind), int(upload.get(key, 0))
        if region is not None and limit and region.bytes > limit:
            raise BoardError(
                f"profile {board.id} has {region.bytes} bytes of {kind}, but PlatformIO's board {board_id} has "
                f"{limit}: choose another profile with custom_autodiff_board"
            )
    limit = int(upload.get("maximum_ram_size", 0))
    if ram is not None and limit and ram > limit:
        raise BoardError(
            f"custom_autodiff_ram = {ram}, but PlatformIO's board {board_id} has {limit} bytes of RAM"
        )
    core = build.get("cpu")
    if core is not None and core != board.target.core:
        raise BoardError(
            f"profile {board.id} is for {board.target.core}, but PlatformIO's board {board_id} is a {core}: choose "
            "another profile with custom_autodiff_board"
        )
