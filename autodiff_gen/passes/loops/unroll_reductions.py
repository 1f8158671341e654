"""Sums of a few terms, which are written out as one expression rather than as a loop."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from ...ir.node import Node, Value, base
from ...ir.op_kinds import Elementwise, Reduce
from ...ir.traits import is_work
from .nesting import Body, Root

_TERMS = 8  # the most terms of a sum that is written out


def written_out(roots: Mapping[Node, Root], inside: Collection[Value]) -> dict[Root, Body]:
    """Sums of a few terms in loops with no other statements, each with its outermost reduced loop: they become one
    expression."""
    out: dict[Root, Body] = {}
    for root in roots.values():
        lower = root.node.op.lower
        if not (isinstance(lower, Reduce) and root.reduced and lower.sums):
            continue
        extents = [body.extent for body in _reduced(root)]
        sizes = [e for e in extents if isinstance(e, int)]
        few = len(sizes) == len(extents) and math.prod(sizes) <= _TERMS
        if few and _is_alone(root) and _is_short(root.node.operands[0], roots, inside):
            out[root] = _reduced(root)[0]
    return out


def _reduced(root: Root) -> tuple[Body, ...]:
    """The loops that are reduced over, outermost first."""
    return root.inner.path[len(root.inner.path) - root.reduced :]


def _is_alone(root: Root) -> bool:
    """Whether nothing else is in the loops of a reduction."""
    return all(len(body.items) == 1 for body in _reduced(root))


def _is_short(v: Value, roots: Mapping[Node, Root], inside: Collection[Value]) -> bool:
    """Whether a term is cheap to compute, from two loads at most."""
    loads, pending = 0, [v]
    while pending:
        source = base(pending.pop())
        if source not in inside or source.node in roots:
            loads += 1
        elif not isinstance(source.node.op.lower, Elementwise) or is_work(source.node):
            return False
        else:
            pending += source.node.operands
    return loads <= 2
