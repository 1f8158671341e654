"""The progress of a command: one line on a terminal, which is rewritten and removed at the end; nothing in a pipe."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

EVERY = 0.1  # seconds between two lines
_CLEAR = "\r\x1b[K"


class _Line:
    """tasks: the running tasks, the outermost first."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._begin, self._next = stream, time.monotonic(), 0.0
        self.detail = ""
        self._ended, self.lock = threading.Event(), threading.RLock()
        self.tasks: list[str] = []

    def count(self) -> None:
        """Show each second how long the command has taken, until `end`."""
        while not self._ended.wait(1.0):
            with self.lock:
                self._show(self.detail)

    def end(self) -> None:
        self._ended.set()
        self.clear()

    def show(self, detail: str = "") -> None:
        with self.lock:
            self._show(detail)

    def _show(self, detail: str) -> None:
        now = time.monotonic()
        self.detail = detail
        if now < self._next or not self.tasks:
            return
        self._next = now + EVERY
        words = ", ".join([*self.tasks, *([detail] if detail else [])])
        text = f"{words} ({now - self._begin:.0f} s)"
        self._stream.write(_CLEAR + text[: shutil.get_terminal_size().columns - 1])
        self._stream.flush()

    def clear(self) -> None:
        with self.lock:
            if self._next:
                self._stream.write(_CLEAR)
                self._stream.flush()
            self._next = 0.0


_line: _Line | None = None


@contextmanager
def on_terminal(stream: TextIO) -> Iterator[None]:
    """Show the progress of the block on this stream, if the stream is a terminal."""
    global _line
    before = _line
    if stream.isatty() and os.environ.get("TERM") != "dumb":
        _line = _Line(stream)
        threading.Thread(target=_line.count, daemon=True).start()
    try:
        yield
    finally:
        if _line is not None and _line is not before:
            _line.end()
        _line = before


@contextmanager
def doing(what: str) -> Iterator[None]:
    """A task, or a part of the one that is being done."""
    line = _line
    if line is None:
        yield
        return
    line.tasks.append(what)
    line.show()
    try:
        yield
    finally:
        with line.lock:
            line.tasks.pop()
            line.detail = ""
            if not line.tasks:
                line.clear()


def step(what: str) -> None:
    """A step of the task that is being done."""
    if _line is not None:
        _line.show(what)
