"""Numbers in documents that depend on the compiler: sizes of code and of stack frames, counts of instructions."""

from __future__ import annotations

import functools
import subprocess

DOCUMENTED = "12.2"  # arm-none-eabi-gcc of the numbers in the documents
_OTHERS = 0.02  # of the size; GCC 14 differs by 3 to 13 %


@functools.cache
def by_the_documented_compiler() -> bool:
    """Whether what is built here has the numbers of the documents."""
    command = ["arm-none-eabi-gcc", "-dumpfullversion"]
    version = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return version.startswith(f"{DOCUMENTED}.")


def agrees(written: float, measured: float) -> bool:
    """Whether a document has the number that was measured: exactly with its compiler, otherwise nearly."""
    share = 0.0 if by_the_documented_compiler() else _OTHERS
    return abs(written - measured) <= share * measured
