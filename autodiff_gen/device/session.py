"""A model compiled for a board, and connections to a board that runs it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from ..codegen.compiler import compile_model
from ..codegen.regions import Ram
from ..errors import ModelError
from ..host.compiler import Compiler, find_compiler
from ..host.trainer import Trainer
from ..kernels import registry
from ..model.loader import find_model, load_model
from ..model.model import Model
from ..targets import board as boards
from ..targets.build_commands import build_folder
from .board import Board
from .errors import LinkError
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
        self._words = {"board": board, "model": model, "name": name, "kernels": kernels}
        self._words["ram"] = _words_of(ram)
        self.model, self.path = loaded, find_model(model)[0]
        chosen = None if kernels is None else registry.parse_list(kernels)
        self.program = compile_model(loaded, name or file_name, chosen, self.profile, ram)

    @property
    def elf(self) -> Path:
        """The path of the link's firmware that ./scons builds."""
        changes = {key: self._words[key] or "" for key in ("kernels", "ram")}
        return Path(build_folder(self.profile.id, self.program.name, changes)) / "link.elf"

    @property
    def place(self) -> str:
        """`net on stm32`, for messages."""
        return f"{self.program.name} on {self.profile.id}"

    def trainer(self) -> Trainer:
        """The model as a Python object of the host, with the kernels of the program."""
        return Trainer(self.program, Compiler(find_compiler(None), ""))

    def open(self, port: str | None, baud: int = BAUD) -> Transport:
        """The port, or without one the firmware that ./scons built: in QEMU, or as a program on the host."""
        if port is None:
            if not self.elf.is_file():
                words = shlex.join(f"{key}={word}" for key, word in self._words.items() if word is not None)
                raise LinkError(
                    f"no --port, and no {self.elf}: build it with ./scons {words} link, "
                    "or name another with --port qemu:FILE or exec:FILE" + self._built()
                )
            port = f"exec:{self.elf}" if self.profile.is_host else f"qemu:{self.elf}"
        if port.startswith("qemu:"):
            return QemuPort(self.profile, Path(port.removeprefix("qemu:")))
        if port.startswith("exec:"):
            program = Path(port.removeprefix("exec:"))
            if program.is_file():  # run it in its folder, where its flash.bin is stored
                return Pipe([str(program.resolve())], program.resolve().parent)
        return open_port(port, baud)

    def _built(self) -> str:
        """The firmware of the link that there is: of ./scons for other boards, and of the user's project."""
        folder = self.elf.parents[2]
        found = [
            f"--board {path.parts[1]}" for path in sorted(folder.glob(f"*/{self.elf.parent.name}/link.elf"))
        ]
        kind = "exec" if self.profile.is_host else "qemu"
        found += [f"--port {kind}:{path}" for path in sorted(folder.glob("link.elf"))]
        return f"; already built: {', '.join(found)}" if found else ""

    def connect(
        self, port: str | None, baud: int = BAUD, timeout: float = 15.0, files: bool = False
    ) -> Board:
        """The board at a port. Raises LinkError. `files`: QEMU reads inputs from a file, not from its serial port."""
        transport = self.open(port, baud)
        try:
            board = Board(self.program, Link(transport, timeout))
            if isinstance(transport, QemuPort) and files:
                board.folder = transport.machine.folder
            return board
        except BaseException:
            transport.close()
            raise


def _words_of(ram: Ram) -> str | None:
    """A budget as the option of ./scons, in bytes."""
    if isinstance(ram, Mapping):
        return ",".join(f"{region}={size}" for region, size in ram.items())
    return None if ram is None else str(ram)
