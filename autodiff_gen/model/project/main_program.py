"""The main program of a project: the one in the folder of its models, otherwise a generated one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ...codegen.board_link_source import main_source
from ...codegen.program import Program

MAINS = ("main.c", "main.cpp")


def main_of(programs: Sequence[Program], models: Sequence[Path]) -> tuple[str, str]:
    """The text of the main program, and the suffix of its file. The program is taken from the models' folder if all
    models are in one folder and it includes the header of one."""
    folders = {model.resolve().parent for model in models}
    for path in [folder / name for folder in folders for name in MAINS if len(folders) == 1]:
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            if any(re.search(rf'^ *# *include *["<]{p.name}\.h[">]', text, re.MULTILINE) for p in programs):
                return text, path.suffix
    return _begun(programs), ".c"


def _begun(programs: Sequence[Program]) -> str:
    """A generated program. It trains the models that can be trained."""
    trained = [p for p in programs if {e.name for e in p.entries} >= {"train_step", "predict"}]
    if trained:
        return main_source(trained)
    headers = "".join(f'#include "{p.name}.h"\n' for p in programs)
    return f"{headers}\nint main(void) {{\n    return 0;\n}}\n"
