"""Constant arrays of generated C."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.identifiers import Scope
from ..ir.names import NO_LAYERS, name_of
from ..ir.node import CONST, Value
from ..ir.types import DType
from ..lowering import c_syntax
from ..lowering.plan import EntryPlan
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


def constant_names(
    plans: Iterable[EntryPlan], taken: Iterable[str] = (), layers: Mapping[str, str] = NO_LAYERS
) -> dict[Value, str]:
    """The names of constant arrays that are too large to be written into expressions; equal ones have one. `taken` are
    the names of arguments, `layers` long paths of modules to short ones."""
    scope, names = Scope(taken), {}
    seen: dict[bytes, str] = {}
    for plan in (p for outer in plans for p in outer.all_plans()):
        for v in plan.graph.leaves(CONST):
            value = v.node.attrs["value"]
            if value.size > 1:
                key = value.tobytes() + v.type.dtype.name.encode()
                if key not in seen:
                    seen[key] = scope.fresh(name_of(v, layers) if v.node.origin.labels else "table")
                names[v] = seen[key]
    return names


def constant_tables(names: Mapping[Value, str]) -> list[Table]:
    """A table for each name."""
    first: dict[str, Value] = {}
    for v, name in names.items():
        first.setdefault(name, v)
    return [table(name, v.node.attrs["value"], v.type.dtype) for name, v in first.items()]
