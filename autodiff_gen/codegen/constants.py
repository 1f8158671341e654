"""Constant arrays of generated C."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from ..ir.identifiers import Scope
from ..ir.names import NO_LAYERS, merged_constant, name_of
from ..ir.node import CONST, Value
from ..ir.types import DType
from ..lowering.c import c_syntax
from ..lowering.plan import EntryPlan
from .line_breaking import WIDTH, folded


@dataclass(frozen=True)
class ConstantArray:
    """A constant array of the generated C."""

    name: str
    c_type: str
    shape: tuple[int, ...]
    lines: tuple[str, ...]

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    @property
    def note(self) -> str:
        """A comment after the brace with the shape: the declaration has only the number of elements."""
        return f" /* [{','.join(map(str, self.shape))}] */" if len(self.shape) > 1 else ""


def table(name: str, array: np.ndarray[Any, Any], dtype: DType) -> ConstantArray:
    values = array.reshape(-1)
    keys = values.view(f"u{values.itemsize}").tolist()  # the bits: 0.0 and -0.0 differ
    distinct = dict(zip(keys, values.tolist(), strict=True))
    items = {key: c_syntax.literal(x, dtype) + "," for key, x in distinct.items()}
    return ConstantArray(name, dtype.c, array.shape, _lines([items[key] for key in keys]))


def _lines(items: Sequence[str]) -> tuple[str, ...]:
    """The items in lines, as many in each as its width allows."""
    ends = list(accumulate(len(item) + 1 for item in items))
    lines, first = [], 0
    while first < len(items):
        before = ends[first - 1] if first else 0
        last = max(bisect_right(ends, before + WIDTH - 3, first), first + 1)
        lines.append(" ".join(items[first:last]))
        first = last
    return tuple(lines) or ("",)


def constant_names(
    plans: Iterable[EntryPlan], taken: Iterable[str] = (), layers: Mapping[str, str] = NO_LAYERS
) -> dict[Value, str]:
    """The names of constant arrays that are too large to be written into expressions; equal arrays share a
    name. taken: the names of arguments; layers: maps long paths of modules to short ones."""
    scope, names = Scope(taken), dict[Value, str]()
    equal: dict[bytes, list[Value]] = {}
    for plan in (p for outer in plans for p in outer.all_plans()):
        for v in plan.graph.leaves(CONST):
            value = v.node.attrs["value"]
            if value.size > 1:
                equal.setdefault(value.tobytes() + v.type.dtype.name.encode(), []).append(v)
    for group in equal.values():
        names.update(dict.fromkeys(group, scope.fresh(name_of(merged_constant(group), layers))))
    return names


def constant_tables(names: Mapping[Value, str]) -> list[ConstantArray]:
    """A table for each name."""
    first: dict[str, Value] = {}
    for v, name in names.items():
        first.setdefault(name, v)
    return [table(name, v.node.attrs["value"], v.type.dtype) for name, v in first.items()]


def declared(tables: Sequence[ConstantArray]) -> list[str]:
    """Declarations of tables that are defined further down, a statement for each type."""
    arrays: dict[str, list[str]] = {}
    for t in tables:
        arrays.setdefault(t.c_type, []).append(f"{t.name}[{t.count}]")
    whole = [f"static const {c_type} {', '.join(names)};" for c_type, names in arrays.items()]
    return [line for text in whole for line in folded(text, WIDTH)]
