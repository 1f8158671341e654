"""Two loops become one if the rows, over which the outer loop counts, follow each other in memory in all arrays.

for (i = 0; i < 32; i++) {                     for (i = 0; i < 512; i++) {
    for (j = 0; j < 16; j++) {                     y[i] = x[i] * s;
        y[i * 16 + j] = x[i * 16 + j] * s;  ->  }
    }
}
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..c import c_ast as c
from ..c import c_query, c_syntax
from .accesses import with_variable


def with_collapsed_loops(body: c.Statements) -> c.Statements:
    """Statements in which one loop replaces such two loops."""
    return c_query.with_loops(body, _collapsed)


def _collapsed(outer: c.For) -> c.For:
    if len(outer.body) != 1 or not isinstance(inner := outer.body[0], c.For):
        return outer
    rows, row = outer.from_zero, inner.from_zero
    if (
        rows is None
        or not isinstance(row, int)
        or inner.reduction is not None
        or (outer.step, inner.step) != (1, 1)
    ):
        return outer
    if not _rows_follow_each_other(outer.variable, inner, row):
        return outer
    extent = rows * row
    return replace(
        inner,
        variable=outer.variable,
        stop=c_syntax.size(extent),
        extent=extent,
        body=c_query.rewritten(inner.body, lambda node: _moved(node, outer.variable, inner.variable)),
        rolled=outer.rolled or inner.rolled,
    )


def _rows_follow_each_other(row: str, inner: c.For, extent: int) -> bool:
    """Whether the variables are in indices only, where a row is as far from the next one as it is long."""
    names = (c.Name(row), c.Name(inner.variable))
    in_indices = 0
    for node in c_query.nodes(inner.body):
        if isinstance(node, c.Element):
            used = [n for n in c_query.nodes(node.index) if n in names]
            step = (c.Index(node.terms).steps or {}).get(inner.variable, 0)
            if used and (len(set(used)) != 2 or _of_row(node, row) != [(names[0], extent * step)]):
                return False
            in_indices += len(used)
    return in_indices == sum(n in names for n in c_query.nodes(inner.body))


def _of_row(element: c.Element, row: str) -> list[tuple[c.Expr, int]]:
    """The terms of its index in which the variable of the rows is."""
    return [t for t in element.terms if row in c_query.names(t)]


def _moved(node: Any, row: str, column: str) -> Any:
    """An element whose index counts in the variable of the rows only."""
    if not isinstance(node, c.Element) or not (gone := _of_row(node, row)):
        return node
    return with_variable(node.at(*(t for t in node.terms if t not in gone)), column, row)
