"""A model compiled for a board, and connections to a board that runs it."""

from __future__ import annotations

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
from .qemu import QemuPort
from .transport import BAUD, Pipe, Transport, open_port


class Session:
    """The model file `model` compiled for a board: the program of the board's firmware."""

    def __init__(
        self,
        model: str,
        board: str,
        name: str | None = None,
        kernels: str | None = None,
        ram: Ram = None,
    ) -> None:
        self.profile = boards.load(board)
        loaded, file_name, _ = load_model(model)
        if not isinstance(loaded, Model):
            raise ModelError(
                f"{model}: expected an ag.Model called `model`; functions cannot be trained on a board"
            )
        self._changes = {"kernels": kernels or "", "ram": _words_of(ram)}
        self.model, self.path = loaded, find_model(model)[0]
        chosen = None if kernels is None else registry.parse_list(kernels)
        with doing(f"compiling {name or file_name} for {board}"):
            self.program = compile_model(loaded, name or file_name, chosen, self.profile, ram)

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
        """What runs the firmware of the link when no port is named: exec or qemu. Raises LinkError."""
        if self.profile.is_host:
            return "exec"
        if self.profile.qemu is None:
            raise LinkError(
                f"board {self.profile.id} has no emulator: name the port of a board that runs the link's firmware, "
                "such as --port /dev/ttyACM0"
            )
        return "qemu"

    @cached_property
    def firmware(self) -> str:
        """The port of the firmware of the link, which is built. Raises LinkError, ToolError."""
        port = f"{self.runner}:{self.elf}"
        with doing(f"building {self.elf}"):
            build_link(self.program, self.profile, self.elf)
        return port

    def open(self, port: str | None, baud: int = BAUD) -> Transport:
        """The port, or without one the firmware of the link."""
        port = self.firmware if port in (None, "qemu") else port
        if port.startswith("qemu:"):
            return QemuPort(self.profile, Path(port.removeprefix("qemu:")))
        if port.startswith("exec:"):
            program = Path(port.removeprefix("exec:"))
            if program.is_file():  # run it in its folder, where its flash.bin is stored
                return Pipe([str(program.resolve())], program.resolve().parent)
        return open_port(port, baud)

    def connect(
        self, port: str | None, baud: int = BAUD, timeout: float = 15.0, files: bool = False
    ) -> Board:
        """The board at a port. Raises LinkError, and DeviceError where the file of its flash has another size. `files`:
        QEMU reads inputs from a file, not from its serial port."""
        transport = self.open(port, baud)
        try:
            board = Board(self.program, Link(transport, timeout))
            if board.greeting.start == FLASH_SIZE:
                raise DeviceError("checkpoints", FLASH_SIZE)
            if isinstance(transport, QemuPort) and files:
                board.folder = transport.machine.folder
            return board
        except BaseException:
            transport.close()
            raise


def _words_of(ram: Ram) -> str:
    """A budget as the option of ./scons, in bytes; nothing without one."""
    if isinstance(ram, Mapping):
        return ",".join(f"{region}={size}" for region, size in ram.items())
    return "" if ram is None else str(ram)
