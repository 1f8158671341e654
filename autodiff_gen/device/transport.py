"""Byte streams to a board: a socket (QEMU), a serial port, or a program's standard input and output."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import shlex
import socket
import subprocess
import time
from pathlib import Path
from typing import Any, Protocol

from ..errors import pip_install
from .errors import Broken, LinkError, Unreachable
from .lock import FolderLock, holder_of

BAUD = 115200


class Transport(Protocol):
    """Bytes to and from a board. `baud`: the speed of the line; None where it has none. `folder`: where the board has
    its files, if it runs on the host; otherwise None."""

    @property
    def baud(self) -> int | None: ...
    @property
    def folder(self) -> Path | None: ...

    def write(self, data: bytes) -> None:
        """Send all of `data`."""

    def read(self, timeout: float) -> bytes:
        """The bytes received so far; waits up to `timeout` seconds for the first one."""

    def close(self) -> None:
        """Close the port."""


def open_port(port: str, baud: int = BAUD, wait: float = 0.0) -> Transport:
    """Open `socket://host:port`, `exec:program`, or a serial port such as /dev/ttyACM0. Raises LinkError.

    `wait`: seconds to retry a socket on which nothing listens yet.
    """
    if port.startswith("socket://"):
        return _socket(port, wait)
    if port.startswith("exec:"):
        return Pipe(shlex.split(port.removeprefix("exec:")), name=port)
    return _serial(port, baud)


class Stream:
    """A connected socket."""

    baud = folder = None

    def __init__(self, connected: socket.socket, name: str) -> None:
        self._socket, self._name = connected, name
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.setblocking(True)

    def write(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise Broken(f"{self._name}: the connection broke: {error.strerror}") from None

    def read(self, timeout: float) -> bytes:
        if not select.select([self._socket], [], [], max(timeout, 0.0))[0]:
            return b""
        try:
            data = self._socket.recv(4096)
        except OSError as error:
            raise Broken(f"{self._name}: the connection broke: {error.strerror}") from None
        if not data:
            raise Broken(f"{self._name}: the other end closed the connection")
        return data

    def close(self) -> None:
        with contextlib.suppress(OSError):  # ends a read of another thread
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def _socket(port: str, wait: float) -> Stream:
    host, _, number = port.removeprefix("socket://").rpartition(":")
    if not host or not number.isdigit() or not 0 < int(number) < 65536:
        raise LinkError(f"port {port}: write socket://host:number")
    limit = time.monotonic() + wait
    while True:
        try:
            return Stream(socket.create_connection((host.strip("[]"), int(number)), timeout=5), port)
        except OSError as error:
            if time.monotonic() >= limit:
                raise Unreachable(f"port {port}: cannot connect: {error.strerror or error}") from None
            time.sleep(0.02)


class Pipe:
    """A program that acts as the board; its standard input and output are the connection."""

    baud = None

    def __init__(
        self, argv: list[str], cwd: Path | None = None, lock: FolderLock | None = None, name: str = ""
    ) -> None:
        """`lock`: of the folder `cwd`, which `close` releases. `name`: of the port, for messages."""
        if not argv:
            raise LinkError("port exec: names no program")
        self.folder, self._lock, self._name = cwd, lock, name or f"exec:{argv[0]}"
        try:
            self.process = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=cwd, bufsize=0
            )
        except OSError as error:
            raise LinkError(f"{self._name}: cannot be run: {error.strerror}") from None

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        try:
            while data:
                data = data[self.process.stdin.write(data) :]
        except OSError:
            raise LinkError(f"{self._name}: the program ended") from None

    def read(self, timeout: float) -> bytes:
        assert self.process.stdout is not None
        handle = self.process.stdout.fileno()
        if not select.select([handle], [], [], max(timeout, 0.0))[0]:
            return b""
        data = os.read(handle, 4096)
        if not data:
            raise LinkError(f"{self._name}: the program ended")
        return data

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                assert stream is not None
                stream.close()
        if self._lock is not None:
            self._lock.release()


class _Serial:
    folder = None

    def __init__(self, port: Any, name: str, baud: int) -> None:
        self._port, self._name, self.baud = port, name, baud

    def write(self, data: bytes) -> None:
        try:
            self._port.write(data)
            self._port.flush()
        except OSError as error:
            raise LinkError(f"port {self._name}: the serial port failed: {error}") from None

    def read(self, timeout: float) -> bytes:
        try:
            self._port.timeout = max(timeout, 0.0)
            return bytes(self._port.read(max(1, self._port.in_waiting)))
        except OSError as error:
            raise LinkError(f"port {self._name}: the serial port failed: {error}") from None

    def close(self) -> None:
        self._port.close()


def _serial(port: str, baud: int) -> _Serial:
    try:
        import serial
    except ImportError:
        raise LinkError(f"port {port}: serial ports need pyserial; run: {pip_install('pyserial')}") from None
    try:
        return _Serial(serial.serial_for_url(port, baudrate=baud, timeout=0, exclusive=True), port, baud)
    except (OSError, ValueError) as error:  # pyserial's own errors are OSErrors
        number = getattr(error, "errno", None)
        if number in (errno.EAGAIN, errno.EBUSY):
            raise LinkError(f"port {port}: {holder_of(port)} has it open: end it first") from None
        why = os.strerror(number) if number else str(error)
        if "Could not configure port" in why:  # a file, or another kind of device
            why = "it is not a serial port"
        raise LinkError(f"port {port}: cannot be opened: {why}{_others()}") from None


def _others() -> str:
    from serial.tools import list_ports

    ports = sorted(p.device for p in list_ports.comports())
    return f"; available ports: {', '.join(ports)}" if ports else "; this host has no serial port"
