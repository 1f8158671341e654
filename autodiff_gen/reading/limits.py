"""Limits of the memory and work that a file may cause. AUTODIFF_LIMITS raises all of them; those with `per_byte` grow
with the size of the file."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

from ..errors import AutodiffError, ToolError, shortened

OPTION = "AUTODIFF_LIMITS"


@dataclass(frozen=True)
class Limit:
    """At most `least + per_byte * size` of `what`, for a file of `size` bytes."""

    what: str
    least: int
    per_byte: float = 0.0

    def most(self, size: int = 0) -> int:
        """The limit for a file of this size. Raises ToolError for a wrong value of the environment variable OPTION."""
        return int((self.least + self.per_byte * size) * _factor())

    def check(self, wanted: int, name: str, error_type: type[AutodiffError], size: int = 0) -> None:
        """Raises an error of this kind if a file, `name`, wants more."""
        most = self.most(size)
        if wanted > most:
            raise error_type(
                f"{name} asks for {_number(wanted)} {self.what}, the limit is {most:,}; for a file that you trust, "
                f"set the environment variable {OPTION}={_needed(wanted, most)}"
            )


MEMORY = Limit("bytes of memory", 256 << 20, 4)
PROCESS = Limit("bytes of memory", 1280 << 20, 16)  # while a file is read and imported
TEXT = Limit("bytes of text", 32 << 20, 1)  # of JSON, whose values are about 20 times as large in memory
ENTRIES = Limit("entries", 100_000)  # of an archive
NODES = Limit("operations", 20_000, 0.02)  # after loops are unrolled and functions inlined
DEPTH = Limit("levels of nested parts", 64)


def _factor() -> float:
    text = os.environ.get(OPTION, "1")
    try:
        factor = float(text)
    except ValueError:
        factor = math.nan
    if not 1 <= factor <= 1e6:
        raise ToolError(
            f"the environment variable {OPTION}={shortened(text)} must be a number from 1 to 1000000"
        )
    return factor


def _needed(wanted: int, most: int) -> str:
    """The factor that allows `wanted`, "..." where none does."""
    return f"{math.ceil(wanted * _factor() / most)}" if wanted < most * 1_000_000 else "..."


def _number(wanted: int) -> str:
    return f"{wanted:,}" if wanted < 10**18 else "more than 10^18"
