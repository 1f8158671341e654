"""Loops over the elements of a tile count from 0. What makes other loops of them needs the place where it begins.

for (j = i; j < i + 8; j++) {                        for (j = 0; j < 8; j++) {
    y_block[j - i] = x_block[j - i] * scale[j];  ->      y_block[j] = x_block[j] * scale[i + j];
}                                                    }
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...lowering.c import c_ast as c
from ...lowering.c import c_query


def with_tiles_from_zero(body: c.Statements) -> c.Statements:
    """Statements with such loops."""
    return c_query.with_loops(body, _from_zero)


def _is_of_tile(loop: c.For) -> bool:
    match loop:
        case c.For(stop=c.Binary("+", first, c.Literal()), start=c.Name() as start):
            return first == start
    return False


def _from_zero(loop: c.For) -> c.For:
    if not _is_of_tile(loop):
        return loop
    assert isinstance(loop.stop, c.Binary)
    body = _moved(loop.body, c.Name(loop.variable), loop.start)
    return replace(loop, start=c.number(0), stop=loop.stop.right, body=body)


def _moved(body: c.Statements, variable: c.Name, start: c.Expr) -> c.Statements:
    """Statements in which a variable counts from `start`."""

    def change(node: Any) -> Any:
        if node == variable:
            return c.Sum((start, variable))
        return _sum(node) if isinstance(node, c.Sum) else node

    return c_query.rewritten(body, change)


def _sum(node: c.Sum) -> c.Expr:
    """A sum without a term that is subtracted again, and without sums among its terms."""
    terms: list[c.Expr] = []
    for term in node.terms:
        terms += term.terms if isinstance(term, c.Sum) and not term.less else [term]
    less = []
    for term in node.less:
        if term in terms:
            terms.remove(term)
        else:
            less.append(term)
    return c.total(terms, less)
