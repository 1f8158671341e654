"""A model for a board, and ways to reach one that runs it."""

from __future__ import annotations

from pathlib import Path

from ..codegen.compiler import compile_model
from ..errors import ModelError
from ..kernels import registry
from ..model.loader import find_model, load_model
from ..model.model import Model
from ..targets import board as boards
from .board import Board
from .errors import LinkError
from .link import Link
from .qemu import QemuPort
from .transport import BAUD, Pipe, Transport, open_port


class Session:
    """The model file `model` compiled for a board: what the board's firmware was made from."""

    def __init__(
        self,
        model: str,
        board: str,
        name: str | None = None,
        kernels: str | None = None,
        ram: int | None = None,
    ) -> None:
        self.profile = boards.load(board)
        loaded, found, _ = load_model(model)
        if not isinstance(loaded, Model):
            raise ModelError(f"{model}: no ag.Model called `model`, which a board could train")
        self.model, self.path = loaded, find_model(model)[0]
        chosen = None if kernels is None else registry.parse_list(kernels)
        self.program = compile_model(loaded, name or found, chosen, self.profile, ram)

    @property
    def elf(self) -> Path:
        """Where ./scons puts the link's firmware."""
        return Path("build") / self.profile.id / self.program.name / "link.elf"

    def open(self, port: str | None, baud: int = BAUD) -> Transport:
        """The port, or without one the firmware that ./scons made: in QEMU, or as a program on this computer."""
        if port is None:
            if not self.elf.is_file():
                raise LinkError(
                    f"no --port, and no {self.elf}: make it with ./scons board={self.profile.id} "
                    f"model={self.program.name} link"
                )
            port = f"exec:{self.elf}" if self.profile.is_host else f"qemu:{self.elf}"
        if port.startswith("qemu:"):
            return QemuPort(self.profile, Path(port.removeprefix("qemu:")))
        if port.startswith("exec:"):
            program = Path(port.removeprefix("exec:"))
            if program.is_file():  # its flash.bin lies beside it
                return Pipe([str(program.resolve())], program.resolve().parent)
        return open_port(port, baud)

    def connect(self, port: str | None, baud: int = BAUD, timeout: float = 15.0) -> Board:
        """The board behind a port. LinkError."""
        transport = self.open(port, baud)
        try:
            return Board(self.program, Link(transport, timeout))
        except BaseException:
            transport.close()
            raise
