"""The main program of a project: the one beside its models, otherwise one to begin with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...codegen.link import main_source
from ...codegen.program import Program

MAINS = ("main.c", "main.cpp")


def main_of(programs: Sequence[Program], models: Sequence[Path]) -> tuple[str, str]:
    """The text of the main program, and how its file ends. Models of several folders have none in common."""
    folders = {model.resolve().parent for model in models}
    for name in MAINS:
        mains = [folder / name for folder in folders if (folder / name).is_file()]
        if len(folders) == 1 and mains:
            return mains[0].read_text(encoding="utf-8"), mains[0].suffix
    return _begun(programs), ".c"


def _begun(programs: Sequence[Program]) -> str:
    """It trains those that can be trained."""
    trained = [p for p in programs if {e.name for e in p.entries} >= {"train_step", "predict"}]
    if trained:
        return main_source(trained)
    headers = "".join(f'#include "{p.name}.h"\n' for p in programs)
    return f"{headers}\nint main(void) {{\n    return 0;\n}}\n"
