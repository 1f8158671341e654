"""Boards of a fleet in emulators. Each board has a folder, with its samples and its flash."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ..datasets.samples import write
from ..device.board import Board
from ..device.link import Link
from ..device.qemu import QemuPort
from ..device.session import FLASH_FILE, Session
from .entropy import draw_entropy
from .linked import LinkedBoard


def emulated_lines(
    sessions: Sequence[Session], sets: Sequence[bytes] | None, folder: Path, fresh: bool, timeout: float
) -> list[LinkedBoard]:
    """A line to a board for each session, whose files are in `folder`/0, 1, ... `sets`: the samples of each board, if
    it trains on its own. `fresh`: the flash of each board is erased. `timeout`: seconds until a board counts as
    silent."""
    lines = []
    for k, session in enumerate(sessions):
        own = folder / str(k)
        own.mkdir(parents=True, exist_ok=True)
        if sets is not None:
            write(own / "samples.bin", sets[k])
            draw_entropy(own)
        if fresh:
            (own / FLASH_FILE).unlink(missing_ok=True)
        _ = session.firmware  # built before threads share it
        lines.append(
            LinkedBoard(str(own), session.profile.id, partial(emulated_board, session, own, timeout))
        )
    return lines


def emulated_board(session: Session, folder: Path, timeout: float) -> Board:
    """A board whose files are in `folder`; an emulator reads the inputs of a step from a file there."""
    port = session.start(folder)
    try:
        board = Board(session.program, Link(port, timeout))
        board.folder = folder if isinstance(port, QemuPort) else None
        return board
    except BaseException:
        port.close()
        raise
