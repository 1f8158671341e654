"""Collect the checks of an entry: the indices that it reads by, as expressions of inputs.

    entry f(w: f32[4], x: s32[3])
      %0: s32[3] = add(x, 1)
      %1: s32[3] = in_range(%0, low=0, high=3, index_of_inputs=%0)
      %2: f32[3] = index_select(w, %1, dim=0)
      y <- %2
    ->
    entry f(w: f32[4], x: s32[3])
      %0: s32[3] = add(x, 1)
      %1: s32[3] = in_range(%0, low=0, high=3, index_of_inputs=%0)
      %2: f32[3] = index_select(w, %1, dim=0)
      y <- %2
      checked first: %0 is from 0 to 3

The `in_range` ops stay: they tell other passes the range of the index, until constants are folded.
"""

from __future__ import annotations

from dataclasses import replace

from ...ir.graph import Graph
from ...ir.index_checks import checks_of
from ..context import Context


def check_indices(graph: Graph, context: Context) -> Graph:
    """See the module."""
    return replace(graph, checks=checks_of(graph.roots))
