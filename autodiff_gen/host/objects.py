"""Objects of a C compiler, not compiled again while what they are made of is the same."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..errors import ToolError
from .compiler import cache_folder, fingerprint


class Objects:
    """`command`: a compiler that is installed, with its flags; `include`: its folders of headers; `read`: others from
    which sources include C; `board`: for messages."""

    def __init__(
        self, command: Sequence[str], include: Sequence[Path], board: str, read: Sequence[Path] = ()
    ) -> None:
        self._command, self._include, self._board = command, [f"-I{path}" for path in include], board
        headers = [p for folder in include for p in sorted(folder.glob("*.h"))]
        headers += [p for folder in read for p in sorted(folder.glob("*.[ch]"))]
        texts = (f"{p.name}\0{p.read_text(encoding='utf-8')}" for p in headers)
        tool = os.path.realpath(shutil.which(command[0]) or command[0])
        self._key = fingerprint(tool, *command[1:], *texts)

    def of(self, source: Path, *flags: str) -> Path:
        """The object of a source with further flags. Raises ToolError if it does not compile."""
        text = source.read_text(encoding="utf-8")
        target = cache_folder() / f"{fingerprint(self._key, *flags, source.name, text)}.o"
        if target.exists():
            return target
        with tempfile.TemporaryDirectory(dir=cache_folder(), prefix="object-") as folder:
            made = Path(folder) / target.name
            words = [*self._command, *flags, *self._include, "-c", str(source), "-o", str(made)]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if done.returncode:
                raise ToolError(f"{source} does not compile for {self._board}: {first_error(done.stderr)}")
            os.replace(made, target)
        return target


def first_error(stderr: str) -> str:
    """The first line of a compiler's or linker's output that is an error, without the linker's path. The last line of
    a linker that fails says just that."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("collect2:")] or lines
    words = ("error:", "undefined reference", "overflowed")
    line = next((line for line in lines if any(word in line for word in words)), lines[0] if lines else "")
    return re.sub(r"^\S+/(ld: )", r"\1", line)
