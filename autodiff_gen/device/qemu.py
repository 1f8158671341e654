"""A board in QEMU whose serial port is a socket; firmware and link are the same as on hardware."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..errors import ToolError
from ..targets import board as boards
from ..targets.build_commands import qemu_argv
from ..targets.toolchain import install_hint
from .errors import LinkError
from .lock import FolderLock
from .transport import Stream, open_port

# Timers count instructions, so that boards can report them (boards/support/common/system.c).
COUNTING = ("-icount", "shift=0")
# A shell runs the emulator, and kills it when the shell's standard input ends: `kill` closes it, and so does the end of
# this process.
_WHILE_OPEN = '"$@" & read -r _; kill -9 $!; wait'


class Qemu:
    """A running emulator; `port` is an argument for `open_port`. Its flash is the file flash.bin in `folder`."""

    def __init__(self, board: boards.BoardSpec, elf: Path, folder: Path | None = None) -> None:
        if not elf.is_file():
            raise LinkError(f"{elf}: no such firmware; without --port it is built")
        number = free_port()
        self.folder = folder or elf.parent
        self.port = f"socket://127.0.0.1:{number}"
        argv = qemu_argv(board, elf.resolve(), serial=f"tcp:127.0.0.1:{number},server=on,wait=off,nodelay=on")
        argv += COUNTING
        if shutil.which(argv[0]) is None:
            raise ToolError(f"{argv[0]} is not installed; run: {install_hint(board)}")
        self._machine = board.qemu.machine if board.qemu else ""
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115  (closed when the emulator ends)
        self.process = subprocess.Popen(
            ["sh", "-c", _WHILE_OPEN, "sh", *argv],
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,  # Ctrl-C must not reach the emulator
        )

    def fault(self) -> str:
        """Why the emulator ended by itself, or an empty text."""
        self._log.seek(0)
        said = next((line.strip() for line in self._log if line.startswith("qemu")), "")
        hint = f"compare the memories of the board file with the memories of QEMU's machine {self._machine}"
        return f"the emulator stopped: {said}; {hint}" if said else ""

    def kill(self) -> None:
        """Kill the emulator, like a power cut."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        self._log.close()


class QemuPort:
    """A port that starts an emulator, and ends it."""

    baud = None

    def __init__(
        self, board: boards.BoardSpec, elf: Path, lock: FolderLock | None = None, folder: Path | None = None
    ) -> None:
        """`folder`: the folder of the board's files, by default the folder of `elf`; `lock`: its lock, which `close`
        releases."""
        self.machine, self._lock = Qemu(board, elf, folder), lock
        self.folder = self.machine.folder
        try:
            with self._faults():
                self._stream = open_port(self.machine.port, wait=10.0)
        except BaseException:
            self.machine.kill()
            raise
        assert isinstance(self._stream, Stream)

    def write(self, data: bytes) -> None:
        with self._faults():
            self._stream.write(data)

    def read(self, timeout: float) -> bytes:
        with self._faults():
            return self._stream.read(timeout)

    @contextlib.contextmanager
    def _faults(self) -> Iterator[None]:
        """Errors of the connection say why the emulator ended, if that is why."""
        try:
            yield
        except LinkError:
            if self.machine.fault():
                raise LinkError(self.machine.fault()) from None
            raise

    def close(self) -> None:
        self._stream.close()
        self.machine.kill()
        if self._lock is not None:
            self._lock.release()


def free_port() -> int:
    """A free TCP port of the host."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        number: int = s.getsockname()[1]
    return number
