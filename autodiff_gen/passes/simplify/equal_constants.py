"""The constant that replaces all constants that are equal to it."""

from __future__ import annotations

from typing import Any

from ...ir.graph import Graph
from ...ir.names import merged_constant
from ...ir.node import CONST, Value
from ...ir.traits import key_of


def equal_constants(graph: Graph) -> dict[Any, tuple[Value, ...]]:
    """For each key of the graph's constants (see key_of), the constant that replaces all constants with this key."""
    found: dict[Any, list[Value]] = {}
    for v in graph.leaves(CONST):
        found.setdefault(key_of(v.node, ()), []).append(v)
    return {key: (merged_constant(group),) for key, group in found.items()}
