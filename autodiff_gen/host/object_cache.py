"""Objects of a C compiler, which are compiled again only when an input changes."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..errors import ToolError
from .compiler import cache_folder, fingerprint, first_error


class Objects:
    """A cache of objects. command: an installed compiler with its flags; include: folders of headers; read: other
    folders with files that sources include; board: its name, for messages."""

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
