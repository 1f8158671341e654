"""Loops of a sum stay loops where compilers would add up the terms of several iterations as one permuted vector.

    for (int32_t j = 0; j < 5; j++) {                     for (int32_t j = 0; j < 5; j++) {
        for (int32_t k = 0; k < 4; k++) {                     AG_NOUNROLL
            acc += x[j * 4 + (3 - k)];             ->         for (int32_t k = 0; k < 4; k++) {
        }                                                         acc += x[j * 4 + (3 - k)];
    }                                                         }
                                                          }

GCC 12.2 at -O3 unrolls the inner loop, reads the four terms as a vector, and adds some of them twice and others not at
all (PR tree-optimization/110381: in-order sums of loads that are permuted). Loads in the order of memory are correct.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from ..c import c_ast as c
from ..c import c_query
from .block_moves import UNROLLED


def with_sums_in_order(body: c.Statements) -> c.Statements:
    """Statements in which such inner loops are not to be unrolled."""
    return c_query.with_loops(body, _changed)


def _changed(outer: c.For) -> c.For:
    own = set(c_query.declared(outer.body))

    def change(inner: c.For) -> c.For:
        if _is_unrolled(inner) and _adds_to_others(inner, own) and _permutes(inner, outer):
            return replace(inner, rolled=True)
        return inner

    body = c_query.with_loops(outer.body, change)
    return outer if body is outer.body else replace(outer, body=body)


def _is_unrolled(loop: c.For) -> bool:
    extent = loop.from_zero
    return isinstance(extent, int) and extent <= UNROLLED and not loop.rolled


def _adds_to_others(loop: c.For, own: Set[str]) -> bool:
    """Whether a loop adds several terms to a variable, or to an element, that the loop around it does not declare."""
    steps = (
        s for s in c_query.statements(loop.body) if isinstance(s, c.StepTemplate) and s.identifier == "+"
    )
    sums = (a for s in steps for a in s.accumulators if loop.variable not in c_query.names(a))
    return any(own.isdisjoint(c_query.names(a.array if isinstance(a, c.Element) else a)) for a in sums)


def _permutes(inner: c.For, outer: c.For) -> bool:
    """Whether the two loops read some array in another order than the order in memory."""
    for node in c_query.nodes(inner.body):
        access = node.access if isinstance(node, c.Element) else None
        if access is None:
            continue
        by_inner, by_outer = (access.step(loop.variable) for loop in (inner, outer))
        if by_inner and by_outer and not 0 < by_inner <= by_outer:
            return True
    return False
