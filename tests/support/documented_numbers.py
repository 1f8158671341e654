"""Numbers in documents that depend on the compiler: sizes of code and of stack frames, counts of instructions.

They come from one compiler. documented_numbers.json has the ratios of others, by their major version, where these
differ by more than 2 %; --update-sizes with such a compiler writes them.
"""

from __future__ import annotations

import fcntl
import functools
import json
import subprocess
from pathlib import Path

import pytest

DOCUMENTED = "12.2"  # arm-none-eabi-gcc of the numbers in the documents
_OTHERS = 0.02  # of another compiler's result when its ratios were recorded
_RATIOS = Path(__file__).with_suffix(".json")


@functools.cache
def _version() -> str:
    command = ["arm-none-eabi-gcc", "-dumpfullversion"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def by_the_documented_compiler() -> bool:
    """Whether builds on this machine have the numbers of the documents."""
    return _version().startswith(f"{DOCUMENTED}.")


def _near(expected: float, measured: float) -> bool:
    return abs(expected - measured) <= _OTHERS * measured


def _record(name: str, written: float, measured: float) -> None:
    with _RATIOS.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        ratios = json.load(file)
        own = ratios.setdefault(_version().split(".")[0], {})
        own.pop(name, None)
        if not _near(written, measured):
            own[name] = round(measured / written, 4)
        file.seek(0)
        file.truncate()
        file.write(json.dumps(ratios, indent=2, sort_keys=True) + "\n")


def agrees(name: str, written: float, measured: float, config: pytest.Config) -> bool:
    """Whether a document has the number that was measured: exactly with its compiler, otherwise nearly, after the
    recorded ratio."""
    if by_the_documented_compiler():
        return written == measured
    if config.getoption("--update-sizes"):
        _record(name, written, measured)
    ratios = json.loads(_RATIOS.read_text()).get(_version().split(".")[0], {})
    return _near(written * ratios.get(name, 1.0), measured)
