"""Constant arrays of generated C."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.types import DType
from ..lowering import c_syntax
from .c_printer import WIDTH


@dataclass(frozen=True)
class Table:
    """A constant array of the generated C."""

    name: str
    c_type: str
    count: int
    lines: tuple[str, ...]


def table(name: str, array: np.ndarray[Any, Any], dtype: DType) -> Table:
    lines, line = [], ""
    for x in array.reshape(-1).tolist():
        item = c_syntax.literal(x, dtype) + ","
        if line and len(line) + 1 + len(item) > WIDTH - 4:
            lines.append(line)
            line = item
        else:
            line = f"{line} {item}" if line else item
    return Table(name, dtype.c, array.size, (*lines, line))
