"""Two loops become one where the rows that the outer one is over follow each other in all arrays.

for (i = 0; i < 32; i++) {                     for (i = 0; i < 512; i++) {
    for (j = 0; j < 16; j++) {                     y[i] = x[i] * s;
        y[i * 16 + j] = x[i * 16 + j] * s;  ->  }
    }
}
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...lowering.c import c_ast as c
from ...lowering.c import c_query
from .loop_accesses import linear


def with_collapsed_loops(body: c.Statements) -> c.Statements:
    """Statements with such loops."""
    return c_query.with_loops(body, _collapsed)


def _collapsed(outer: c.For) -> c.For:
    if len(outer.body) != 1 or not isinstance(inner := outer.body[0], c.For):
        return outer
    if not _counts_up(outer) or not _counts_up(inner) or inner.reduction is not None:
        return outer
    extent, stop = _number(inner.stop), None
    if extent is not None and _rows_follow_each_other(outer.variable, inner, extent):
        stop = _times(outer.stop, extent)
    if stop is None:
        return outer
    return replace(
        inner,
        variable=outer.variable,
        stop=stop,
        body=c_query.rewritten(inner.body, lambda node: _moved(node, outer.variable, inner.variable)),
        rolled=outer.rolled or inner.rolled,
    )


def _counts_up(loop: c.For) -> bool:
    return loop.start == c.number(0) and loop.step == 1


def _number(expr: c.Expr) -> int | None:
    return int(expr.text) if isinstance(expr, c.Literal) and expr.text.isdigit() else None


def _times(stop: c.Expr, extent: int) -> c.Expr | None:
    """So many times the number of iterations; None where the number is no multiple of a variable."""
    if (number := _number(stop)) is not None:
        return c.number(number * extent)
    match stop:
        case c.Name():
            return c.Binary("*", c.number(extent), stop)
        case c.Binary("*", c.Literal(text), c.Name() as n):
            return c.Binary("*", c.number(int(text) * extent), n)
    return None


def _rows_follow_each_other(row: str, inner: c.For, extent: int) -> bool:
    """Whether the variables are in indices only, where a row is as far from the next one as it is long."""
    names = (c.Name(row), c.Name(inner.variable))
    in_indices = 0
    for node in c_query.nodes(inner.body):
        if isinstance(node, c.Element):
            used = {n.text for n in c_query.nodes(node.index) if n in names}
            whole = node.index if isinstance(node.index, c.Sum) else c.Sum((node.index,))
            of_row = [t for t in whole.terms if row in c_query.names(t)]
            step = (linear(node.index) or {}).get(inner.variable, 0)
            if used and (
                len(used) != 2
                or row in c_query.names(whole.less)
                or of_row != [c.times(names[0], extent * step)]
            ):
                return False
            in_indices += sum(n in names for n in c_query.nodes(node.index))
    return in_indices == sum(n in names for n in c_query.nodes(inner.body))


def _moved(node: Any, row: str, column: str) -> Any:
    """An element whose index counts in the variable of the rows only."""
    if not isinstance(node, c.Element) or row not in c_query.names(node.index):
        return node
    whole = node.index if isinstance(node.index, c.Sum) else c.Sum((node.index,))
    kept = c.total([t for t in whole.terms if row not in c_query.names(t)], whole.less)
    return c.Element(node.array, c_query.rewritten(kept, lambda n: c.Name(row) if n == c.Name(column) else n))
