"""The constant that takes the place of equal ones."""

from __future__ import annotations

from typing import Any

from ...ir.graph import Graph
from ...ir.names import merged_constant
from ...ir.node import CONST, Value
from ...ir.traits import key_of


def equal_constants(graph: Graph) -> dict[Any, tuple[Value, ...]]:
    """By the key of constants of the graph, the one that takes the place of all that have it."""
    found: dict[Any, list[Value]] = {}
    for v in graph.leaves(CONST):
        found.setdefault(key_of(v.node, ()), []).append(v)
    return {key: (merged_constant(group),) for key, group in found.items()}
