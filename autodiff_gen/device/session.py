"""A model compiled for a board, and connections to a board that runs it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from ..codegen.compiler import compile_model
from ..codegen.program_regions import Ram
from ..errors import ModelError
from ..host.compiler import Compiler, find_compiler
from ..host.trainer import Trainer
from ..kernels import registry
from ..model.loader import find_model, load_model
from ..model.model import Model
from ..progress import doing
from ..targets import board as boards
from ..targets.build_commands import build_folder
from .board import Board
from .errors import FLASH_SIZE, DeviceError, LinkError
from .firmware import build_link
from .link import Link
from .lock import locked
from .qemu import QemuPort
from .transport import BAUD, Pipe, Transport, open_port

FLASH_FILE = "flash.bin"  # in the folder of firmware that runs on the host (runtime/ag_flash_file.c)


class Session:
    """The model file `model` compiled for a board: the program of the board's firmware."""

    def __init__(
        self,
        model: str,
        board: str,
        name: str | None = None,
        kernels: str | None = None,
        ram: Ram = None,
        trust_board: bool = False,
        accumulate: str = "",
    ) -> None:
        """`accumulate`: the reduction of the loss, for a model that was created without `accumulate`."""
        self.profile = boards.load(board, trusted=trust_board)
        loaded, file_name, _ = load_model(model)
        if not isinstance(loaded, Model):
            raise ModelError(
                f"{model}: expected an ag.Model called `model`; functions cannot be trained on a board"
            )
        accumulate = "" if loaded.accumulate else accumulate
        self._changes = {"kernels": kernels or "", "ram": _words_of(ram), "accumulate": accumulate}
        self.model, self.path = loaded, find_model(model)[0]
        if accumulate:
            self.model = loaded.with_accumulate(accumulate)
        chosen = None if kernels is None else registry.parse_list(kernels)
        with doing(f"compiling {name or file_name} for {board}"):
            self.program = compile_model(self.model, name or file_name, chosen, self.profile, ram)

    @property
    def elf(self) -> Path:
        """The path of the link's firmware, which ./scons also builds there."""
        return Path(build_folder(self.profile.id, self.program.name, self._changes)) / "link.elf"

    @property
    def place(self) -> str:
        """`net on stm32`, for messages."""
        return f"{self.program.name} on {self.profile.id}"

    def trainer(self) -> Trainer:
        """The model as a Python object of the host, with the kernels of the program and the board's instructions."""
        instructions = [flag for flag in self.profile.target.cflags if flag.startswith("-m")]
        return Trainer(self.program, Compiler((*find_compiler(None), *instructions)))

    @property
    def runner(self) -> str:
        """The program that runs the firmware of the link when no port is named: exec or qemu. Raises LinkError."""
        if self.profile.is_host:
            return "exec"
        if self.profile.qemu is None:
            raise LinkError(
                f"board {self.profile.id} has no emulator: name the port of a board that runs the link's firmware, "
                "such as --port /dev/ttyACM0"
            )
        return "qemu"

    @cached_property
    def firmware(self) -> Path:
        """The firmware of the link, which is built. Raises LinkError, ToolError."""
        with doing(f"building {self.elf}"):
            build_link(self.program, self.profile, self.elf)
        return self.elf

    def open(self, port: str | None, baud: int = BAUD) -> Transport:
        """Open the port; None or `qemu`: build and run the firmware of the link. Firmware that runs on the host locks
        its folder."""
        if port in (None, "qemu"):
            port = None
            kind, program = self.runner, self.elf
            program.parent.mkdir(parents=True, exist_ok=True)
        else:
            kind, _, name = port.partition(":")
            program = Path(name)
            if kind not in ("qemu", "exec") or not program.is_file():
                return open_port(port, baud)
        return self._started(kind, None if port is None else program, program.parent)

    def start(self, folder: Path) -> Transport:
        """Build and run the firmware of the link, with the files of the board in `folder`."""
        return self._started(self.runner, None, folder)

    def _started(self, kind: str, program: Path | None, folder: Path) -> Transport:
        lock = locked(folder)
        try:
            program = program or self.firmware
            if kind == "qemu":
                return QemuPort(self.profile, program, lock, folder)
            return Pipe([str(program.resolve())], folder.resolve(), lock, f"exec:{program}")
        except BaseException:
            if lock is not None:
                lock.release()
            raise

    def connect(
        self,
        port: str | None,
        baud: int = BAUD,
        timeout: float = 15.0,
        files: bool = False,
        fresh: bool = False,
    ) -> Board:
        """The board at a port. Raises LinkError, and DeviceError where the file of its flash has another size, unless
        it may be replaced (`fresh`). `files`: QEMU reads inputs from a file, not from its serial port."""
        transport = self.open(port, baud)
        try:
            board = Board(self.program, Link(transport, timeout))
            if isinstance(transport, QemuPort) and files:
                board.folder = transport.machine.folder
            if board.greeting.start != FLASH_SIZE:
                return board
            flash = None if transport.folder is None else transport.folder / FLASH_FILE
            if not fresh or flash is None or not flash.is_file():
                raise DeviceError(FLASH_FILE if flash is None else _shown(flash), FLASH_SIZE)
        except BaseException:
            transport.close()
            raise
        transport.close()
        flash.unlink()
        return self.connect(port, baud, timeout, files)


def _shown(path: Path) -> str:
    """A path as the user would type it here."""
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


def _words_of(ram: Ram) -> str:
    """A budget in bytes as the option ram= of ./scons; empty without one."""
    if isinstance(ram, Mapping):
        return ",".join(f"{region}={size}" for region, size in ram.items())
    return "" if ram is None else str(ram)
