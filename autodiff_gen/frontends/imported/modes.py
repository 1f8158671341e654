"""The warning of an import about layers that were saved in evaluation mode."""

from __future__ import annotations

from .layers import with_layers
from .program import ImportedProgram

SHOWN = 3  # layers of a class that are named


def evaluation_note(program: ImportedProgram) -> str | None:
    """The layers that stay in evaluation mode while the model trains, by class, and how to change that; None without
    such layers."""
    program = with_layers(program)
    found: dict[str, list[str]] = {}
    for path, text in program.layers.items():
        if path in program.evaluated:
            found.setdefault(text.removeprefix("nn.").partition("(")[0], []).append(path)
    if not found:
        return None
    listed = ", ".join(f"{name} ({_some(paths)})" for name, paths in found.items())
    return (
        f"in evaluation mode also while the model trains: {listed}; statistics stay as they are and no dropout is "
        "applied, unless model.py is changed: replace eval() by train()"
    )


def _some(paths: list[str]) -> str:
    more = len(paths) - SHOWN
    return ", ".join(paths[:SHOWN]) + (f" and {more} more" if more > 0 else "")
