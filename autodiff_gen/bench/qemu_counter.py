"""Count the instructions that a program executes between its probes in QEMU, by the plugin bench/qemu/ag_count.c."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import struct
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from elftools.elf.elffile import ELFFile

from ..errors import ToolError
from ..targets import build_commands, installation
from ..targets.board import BoardSpec
from ..targets.toolchain import install_hint

TIMEOUT = 900  # seconds for a run


@dataclass
class ProbeCounts:
    """By probe id: `instructions`; `times`, how often the probe was executed; `profile`, address -> executions.
    `printed`: the lines of the output."""

    instructions: dict[int, int] = field(default_factory=dict)
    times: dict[int, int] = field(default_factory=dict)
    profile: dict[int, dict[int, int]] = field(default_factory=dict)
    printed: list[str] = field(default_factory=list)


def plugin(folder: Path) -> Path:
    """The plugin's library, compiled into `folder` unless it exists. Raises ToolError."""
    source = installation.qemu_plugin()
    try:
        text = source.read_bytes()
    except OSError:
        raise ToolError(
            f"{source}: missing; instructions are counted from a checkout of the project"
        ) from None
    library = folder.resolve() / f"ag_count-{hashlib.sha256(text).hexdigest()[:12]}.so"
    if library.is_file():
        return library
    compiler = os.environ.get("HOSTCC") or "gcc"
    if shutil.which(compiler) is None:
        raise ToolError(
            f"counting instructions needs a C compiler for the host: {compiler} is not installed; "
            "run: sudo apt-get install -y --no-install-recommends gcc libc6-dev, or name another one in HOSTCC"
        )
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f".{library.name}.{os.getpid()}"
    command = [compiler, "-O2", "-fPIC", "-shared", "-o", str(temporary), str(source)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        why = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[0]
        raise ToolError(
            f"{source}: {compiler} cannot compile it: {why}; is libc6-dev (the C headers) installed?"
        )
    os.replace(temporary, library)
    return library


def count(board: BoardSpec, elf: Path, library: Path) -> ProbeCounts:
    """Run `elf` in the board's QEMU with the plugin. Raises ToolError."""
    argv = build_commands.qemu_argv(board, elf.resolve())
    if board.qemu is None:
        raise ToolError(f"board {board.id}: has no [qemu] section; instructions are counted in QEMU only")
    if shutil.which(argv[0]) is None:
        raise ToolError(f"{argv[0]} is not installed; run: {install_hint(board)}")
    elf = elf.resolve()
    out = elf.with_suffix(".counts")
    out.unlink(missing_ok=True)
    for path in (library, out):
        if "," in str(path):
            raise ToolError(f"{path}: QEMU cannot take a path with a comma; build in another folder")
    argv += ["-plugin", f"{library},out={out},profile=on"]
    try:
        done = subprocess.run(
            argv, cwd=elf.parent, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT
        )
    except subprocess.TimeoutExpired:
        raise ToolError(f"{elf}: did not finish in QEMU within {TIMEOUT} seconds; try fewer steps") from None
    output = [*done.stdout.splitlines(), *done.stderr.splitlines()]
    if done.returncode != 0 or not out.is_file():
        last = next((line for line in reversed(output) if line.strip()), "no output")
        raise ToolError(
            f"{elf.name} on {board.id}: {argv[0]} ends with exit code {done.returncode}: {last.strip()}"
        )
    counts = _parse(out.read_text(), _ids(elf))
    counts.printed = output
    return counts


def _ids(elf: Path) -> dict[int, int]:
    """The id of the probe at each address, from the ELF section that AG_PROBE writes."""
    with open(elf, "rb") as file:
        section = ELFFile(file).get_section_by_name(".debug_ag_probes")
        data = b"" if section is None else section.data()
    return {address & ~1: number for address, number in struct.iter_unpack("<II", data)}


def _parse(text: str, ids: dict[int, int]) -> ProbeCounts:
    counts = ProbeCounts()
    for line in text.splitlines():
        kind, *fields = line.split()
        if kind == "probe":
            address, times, total = (int(f, 0) for f in fields)
            number = ids[address]
            counts.instructions[number] = counts.instructions.get(number, 0) + total
            counts.times[number] = counts.times.get(number, 0) + times
        elif kind == "at":
            probe, address, times = (int(f, 0) for f in fields)
            profile = counts.profile.setdefault(ids[probe], {})
            profile[address] = profile.get(address, 0) + times
    for number in {0} & counts.instructions.keys():
        del counts.instructions[number], counts.times[number]
        counts.profile.pop(number, None)
    return counts


def disassembly(board: BoardSpec, elf: Path) -> dict[int, tuple[str, str]]:
    """Mnemonic and operands by address. Raises ToolError."""
    tool = build_commands.tool(board, "objdump")
    if shutil.which(tool) is None:
        raise ToolError(f"{tool} is not installed; run: {install_hint(board)}")
    helium = ["-marmv8.1-m.main"] if "mve" in board.target.features else []
    command = [tool, "-d", "--no-show-raw-insn", *helium, str(elf)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise ToolError(f"{elf}: {tool} cannot read it: {done.stderr.strip()}")
    found = re.finditer(r"^ *([0-9a-f]+):\t(\S+)(?:[ \t]+([^\n;@<]*))?", done.stdout, re.MULTILINE)
    return {int(m[1], 16): (m[2], (m[3] or "").strip()) for m in found}
