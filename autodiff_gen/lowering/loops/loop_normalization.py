"""Loops over the elements of a tile count from 0. Earlier changes of these loops need the place where a tile begins.

for (j = i; j < i + 8; j++) {                        for (j = 0; j < 8; j++) {
    y_block[j - i] = x_block[j - i] * scale[j];  ->      y_block[j] = x_block[j] * scale[i + j];
}                                                    }
"""

from __future__ import annotations

from dataclasses import replace

from ..c import c_ast as c
from ..c import c_query
from .accesses import with_variable


def with_tiles_from_zero(body: c.Statements) -> c.Statements:
    """Statements in which loops over tiles count from 0."""
    return c_query.with_loops(body, _from_zero)


def _from_zero(loop: c.For) -> c.For:
    if not isinstance(loop.start, c.Name) or not isinstance(loop.extent, int):
        return loop
    moved = with_variable(loop.body, loop.variable, loop.start.text, loop.variable)
    body = c_query.rewritten(moved, lambda node: node.flat if isinstance(node, c.Index) else node)
    return replace(loop, start=c.number(0), stop=c.number(loop.extent), body=body)
