"""A terminal that keeps its output."""

from __future__ import annotations

import io

import pytest


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    @property
    def lines(self) -> list[str]:
        """What one line has shown, with the next one in its place."""
        return self.getvalue().split("\r\x1b[K")


def as_stderr(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """The terminal in place of stderr."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    return terminal
