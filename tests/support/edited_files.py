"""Edits of files that must change something."""

from __future__ import annotations

from pathlib import Path


def append(path: Path, text: str) -> None:
    with open(path, "a") as file:
        file.write(text)


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
