"""The texts that are not generated, with which generated pages begin: one sentence a line, as in all Markdown."""

from __future__ import annotations

from pathlib import Path


def intro(name: str) -> str:
    """The text of intros/NAME.md."""
    return (Path(__file__).parent / "intros" / f"{name}.md").read_text()
