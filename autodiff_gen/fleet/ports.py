"""Boards at serial ports and sockets, with their own samples."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial

from ..device.errors import LinkError
from ..device.session import Session
from .linked import LinkedBoard


def port_lines(
    ports: Mapping[str, str], sessions: Mapping[str, Session], baud: int, timeout: float, fresh: bool
) -> list[LinkedBoard]:
    """A line to each port. `ports`: the kind of board at each port; `sessions`: the model for each kind. `fresh`:
    boards forget their rounds. Raises LinkError."""
    known: dict[str, str] = {}
    for port in ports:
        if (other := known.setdefault(_place(port), port)) != port:
            raise LinkError(f"--port: {other} and {port} are the same port: name each board once")
    return [
        LinkedBoard(port, kind, partial(sessions[kind].connect, port, baud, timeout, fresh=fresh), fresh)
        for port, kind in ports.items()
    ]


def _place(port: str) -> str:
    """A text that is the same for two names of one port."""
    kind, colon, rest = port.partition(":")
    if not colon:
        return os.path.realpath(port)
    return (
        f"{kind}:{os.path.realpath(rest)}"
        if kind in ("exec", "qemu")
        else port.replace("localhost", "127.0.0.1")
    )
