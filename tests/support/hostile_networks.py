"""Networks in files that somebody changed on purpose: code that must not be executed, and allowed texts of errors."""

from __future__ import annotations

from pathlib import Path

from autodiff_gen.frontends.files import program_of
from autodiff_gen.frontends.imported.network import network

# Makes a file where it is executed: the fixture nothing_is_executed looks for it.
PAYLOAD = "__import__('pathlib').Path('executed').touch()"


def imported(file: Path) -> None:
    network(program_of(file), file.name)


def checked_error(message: str, error: str, name: str = "net.pt2") -> None:
    assert error in message and name in message
    assert len(message) < 400 and "\n" not in message
