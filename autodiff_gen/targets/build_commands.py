"""Command lines of a board profile: compile, link, run, upload. Stdlib only."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..errors import ToolError
from . import installation
from .board import BoardSpec
from .memory import MemoryRegion, further_regions

CONSOLES = ("auto", "semihosting", "uart")
STRICT_FLAGS = (
    "-pedantic-errors",
    "-Wall",
    "-Wextra",
    "-Wconversion",
    "-Wundef",
    "-Wcast-align",
    "-Wcast-qual",
    "-Wshadow",
    "-Wdouble-promotion",
    "-Werror",
)
_STACK_GUARD = 8192  # inaccessible bytes below the stack; only a larger frame could skip them
_RAM_GUARD = 1 << 24


def build_folder(board_id: str, name: str, changes: Mapping[str, str]) -> str:
    """build/<board>/<name>, with +key=value for every option of ./scons that changes the output and is not empty.
    Commas become `+`: gcc and QEMU split linker flags and file names at commas."""
    words = name + "".join(f"+{key}={value}" for key, value in changes.items() if value)
    return f"build/{board_id}/{words.replace('/', '_').replace(',', '+')}"


def tool(board: BoardSpec, name: str) -> str:
    """The name of the board's `gcc`, `ar`, `objcopy`, `size`, ..."""
    return board.toolchain.prefix + name


def include_dirs(board: BoardSpec) -> list[Path]:
    """Folders of the headers of the runtime (ag_rng.h, ag_console.h, ...) and of the bare-metal support."""
    return [installation.root() / "runtime", *_bare_metal(board)]


def compile_flags(board: BoardSpec, *, console: str = "auto") -> list[str]:
    """Flags for every C file of the firmware, kernels included; the caller adds include paths and -ffp-contract.

    `console`: the output channel. "auto" probes for semihosting once and otherwise uses the UART; "semihosting" probes
    even if a debugger is attached; "uart" never probes. Raises ToolError.
    """
    if console not in CONSOLES:
        raise ToolError(f"unknown console={console}: choose from {', '.join(CONSOLES)}")
    flags = [
        *("-std=c99", "-Os" if board.profile == "size" else "-O2", "-g"),
        *("-fno-strict-aliasing", "-fno-math-errno", "-ffunction-sections", "-fdata-sections"),
        *board.target.cflags,  # after -O2, which they may override
        f"-DAG_BOARD={board.id}",
        *(f"-DAG_RAM_{r.name}={k}" for k, r in enumerate(further_regions(board.memory), 1)),  # ag_region.h
    ]
    if console != "auto":
        flags.append(f"-DAG_CONSOLE_{console.upper()}=1")
    return flags


def cxx_flags(board: BoardSpec, cflags: Iterable[str]) -> list[str]:
    """Flags of a C++ file, from the flags of a C file: on a board without exceptions, type information and destructors
    of static objects, which need a heap."""
    bare = ["-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics", "-fno-use-cxa-atexit"]
    own = [f for f in cflags if not f.startswith("-std=c")]
    return ["-std=gnu++17", *own, *([] if board.is_host else bare)]


def model_flags(board: BoardSpec) -> list[str]:
    """Flags for generated C, after the flags of every file: for the profile "speed", unroll short loops (-O3) and
    duplicate code after branches (-ftracer)."""
    return [] if board.profile == "size" else ["-O3", "-ftracer"]


def link_flags(board: BoardSpec, map_path: Path | str | None = None) -> list[str]:
    """Flags for gcc as linker; they go after the objects. On a board: the linker script with the profile's memory, no
    standard start-up, no heap, sizes printed. `map_path`: the file for the linker map."""
    flags = [*board.target.cflags, "-Wl,--gc-sections"]
    if map_path is not None:
        flags.append(f"-Wl,-Map={map_path}")
    if not board.is_host:
        flags += [f"-Wl,--defsym={name}={value:#x}" for name, value in _link_symbols(board).items()]
        flags += ["-nostartfiles", f"-T{linker_script(board)}", "-Wl,--print-memory-usage", "-lm"]
    return [*flags, *board.target.ldflags]


def linker_script(board: BoardSpec) -> Path:
    """The linker script of the chip's folder if there is one, otherwise the script of all boards."""
    own = board.target.support / "firmware.ld"
    return own if own.is_file() else installation.root() / "boards" / "support" / "common" / "firmware.ld"


def support_sources(board: BoardSpec) -> list[Path]:
    """The C files of every firmware for the board, in addition to its main program, kernels and model."""
    folders = [*include_dirs(board), board.target.support]
    return [path for folder in folders for path in sorted(folder.glob("*.c"))]


def _bare_metal(board: BoardSpec) -> list[Path]:
    """Folders of the code shared by all boards and of the core's start-up code; none on the host."""
    startup = board.target.startup
    return [] if startup is None else [installation.root() / "boards" / "support" / "common", startup]


def link_main() -> Path:
    """The main program of the link's firmware; the same for every model (NAME_link.c)."""
    return installation.root() / "boards" / "support" / "link" / "link_main.c"


def qemu_argv(
    board: BoardSpec, elf: Path | str, *, semihosting: bool = True, serial: str = "stdio"
) -> list[str]:
    """The command that runs `elf` in QEMU, or directly on the host. Run it in the folder of samples.bin with stdin
    closed; its exit code is the firmware's. `serial`: the backend of QEMU's serial port, such as
    tcp:127.0.0.1:5555,server=on,wait=off. Raises ToolError if the board has no emulator.
    """
    if board.is_host:
        return [str(Path(elf).resolve())]
    if board.qemu is None:
        raise ToolError(
            f"board {board.id}: {board.path} has no [qemu] section, so it cannot be run here; use upload"
        )
    argv = [*qemu_machine(board), *("-display", "none", "-monitor", "none", "-serial", serial)]
    if semihosting:
        argv += ["-semihosting-config", "enable=on,target=native"]
    return [*argv, "-kernel", str(elf)]


def qemu_machine(board: BoardSpec) -> list[str]:
    """The emulator's command with its machine, for a board with [qemu]; console and program are not included."""
    assert board.qemu is not None
    cpu = [] if board.qemu.cpu is None else ["-cpu", board.qemu.cpu]
    return [board.qemu.binary, "-M", board.qemu.machine, *cpu, *board.qemu.args]


def upload_argv(board: BoardSpec, binary: Path | str) -> list[str]:
    """The command that writes the raw `binary` to the board's flash, with openocd or st-flash. Raises ToolError."""
    upload = board.upload
    if upload is None:
        raise ToolError(
            f"board {board.id}: {board.path} has no [upload] section, so it cannot be flashed from here"
        )
    openocd, st_flash = shutil.which("openocd"), shutil.which("st-flash")
    if openocd and upload.openocd:
        command = f"program {{{binary}}} {upload.address:#x} verify reset exit"
        return [openocd, *upload.openocd, "-c", command]
    if st_flash and upload.st_flash:
        return [st_flash, "--reset", "write", str(binary), f"{upload.address:#x}"]
    wanted = [n for n, usable in (("openocd", upload.openocd), ("stlink-tools", upload.st_flash)) if usable]
    if not wanted:
        raise ToolError(
            f"board {board.id}: [upload] in {board.path} names neither openocd arguments nor st_flash"
        )
    raise ToolError(
        f"cannot upload to {board.id}: no probe software is installed; apt-get install {' (or '.join(wanted)}"
        + ")" * (len(wanted) - 1)
    )


def _link_symbols(board: BoardSpec) -> dict[str, int]:
    flash, ram = board.region("flash"), board.region("ram")
    assert flash is not None and ram is not None  # board.load has checked
    below, above = _guards(board, ram)
    further = list(enumerate(further_regions(board.memory), 1))
    return {
        "__flash_origin": flash.origin,
        "__flash_bytes": flash.bytes,
        "__ram_origin": ram.origin,
        "__ram_bytes": ram.bytes,
        "__stack_bytes": board.stack_bytes,
        "__guard_below_bytes": below,
        "__guard_above_bytes": above,
        "__store_origin": board.store.origin if board.store else flash.end,
        "__store_slots": board.store.slots if board.store else 0,
        "__store_slot_bytes": board.store.slot_bytes if board.store else 0,
        **{f"__ram{k}_origin": r.origin for k, r in further},
        **{f"__ram{k}_bytes": r.bytes for k, r in further},
    }


def _guards(board: BoardSpec, ram: MemoryRegion) -> tuple[int, int]:
    """Sizes of the MPU guard regions directly below and above main RAM: powers of two that satisfy Armv7-M's alignment
    and do not overlap the board's other memories. 0 if there is no space."""
    others = [r for r in board.memory.values() if r is not ram]
    free_below = ram.origin - max((r.end for r in others if r.end <= ram.origin), default=0)
    free_above = min((r.origin for r in others if r.origin >= ram.end), default=1 << 32) - ram.end
    return _power(ram.origin, min(free_below, _STACK_GUARD)), _power(ram.end, min(free_above, _RAM_GUARD))


def _power(edge: int, limit: int) -> int:
    """The largest power of two that divides `edge` and is at most `limit`; 0 if below 32, the smallest region."""
    size = edge & -edge
    while size > limit:
        size >>= 1
    return size if size >= 32 else 0
