"""Boards of a fleet in emulators. Each board has a folder, with its samples and its flash."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ..datasets.samples import write
from ..device.board import Board
from ..device.link import Link
from ..device.lock import locked
from ..device.qemu import QemuPort
from ..device.session import FLASH_FILE, Session
from ..device.transport import Pipe, Transport
from .linked import Line


def emulated_lines(
    sessions: Sequence[Session], sets: Sequence[bytes], folder: Path, fresh: bool, timeout: float
) -> list[Line]:
    """A line to a board for each session and set of samples, in `folder`/0, 1, ... `fresh`: without what is in its
    flash. `timeout`: seconds until a board counts as silent."""
    lines = []
    for k, (session, samples) in enumerate(zip(sessions, sets, strict=True)):
        own = folder / str(k)
        own.mkdir(parents=True, exist_ok=True)
        write(own / "samples.bin", samples)
        if fresh:
            (own / FLASH_FILE).unlink(missing_ok=True)
        _ = session.firmware  # built before threads share it
        lines.append(Line(str(own), session.profile.id, partial(_board, session, own, timeout)))
    return lines


def _board(session: Session, folder: Path, timeout: float) -> Board:
    port = _open(session, folder)
    try:
        return Board(session.program, Link(port, timeout))
    except BaseException:
        port.close()
        raise


def _open(session: Session, folder: Path) -> Transport:
    lock = locked(folder)
    try:
        if session.runner == "qemu":
            return QemuPort(session.profile, session.firmware, lock, folder)
        return Pipe([str(session.firmware.resolve())], folder.resolve(), lock)
    except BaseException:
        if lock is not None:
            lock.release()
        raise
