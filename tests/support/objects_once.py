"""Objects of hand-written C that many test programs link, each compiled once per test session by whichever worker comes
first."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

FOLDER = Path(os.environ["AUTODIFF_TEST_OBJECTS"])  # made by conftest.py, one for all workers


def objects(command: Sequence[str], sources: Iterable[Path]) -> list[str]:
    """Paths of the objects that `command`, a compiler with all its flags, makes of the sources."""
    return [str(_object(command, source)) for source in sources]


def _object(command: Sequence[str], source: Path) -> Path:
    if "AG_BOARD" not in source.read_text():  # no header has it, so boards of one core share the object
        command = [word for word in command if not word.startswith("-DAG_BOARD=")]
    key = hashlib.sha256("\0".join((*command, str(source))).encode()).hexdigest()[:20]
    target = FOLDER / f"{source.stem}-{key}.o"
    if not target.exists():
        part = target.with_suffix(f".{os.getpid()}")
        words = [*command, "-c", str(source), "-o", str(part)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{' '.join(words)}\n{done.stderr}"
        part.replace(target)
    return target
