"""Sums that are written in another shape than loops of their own, so that they stay in registers: as one expression, or
side by side in one loop.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..ir.node import Value, base
from ..ir.op_kinds import Elementwise, Reduce
from ..ir.types import planned_size
from .loop_nest import Body, LoopNest, Root, Step, is_work

_TERMS = 8  # the most terms of a sum that is written out
_SIDE_BY_SIDE = 16  # the most sums that grow in one loop, and the most terms of each


def written_out(nest: LoopNest) -> dict[Root, Body]:
    """Sums of a few terms that have a loop of their own, each with its outermost reduced loop: they become one
    expression."""
    out: dict[Root, Body] = {}
    for root in nest.roots.values():
        lower = root.node.op.lower
        if not (isinstance(lower, Reduce) and root.reduced and lower.step == "{acc0} += {x};"):
            continue
        extents = [body.extent for body in _reduced(root)]
        sizes = [e for e in extents if isinstance(e, int)]
        few = len(sizes) == len(extents) and math.prod(sizes) <= _TERMS
        if few and _is_alone(root) and _is_short(root.node.operands[0], nest):
            out[root] = _reduced(root)[0]
    return out


def side_by_side(nest: LoopNest) -> dict[Body, Body]:
    """Loops of a few iterations around a reduction, outermost -> innermost: the sums of all iterations grow side by
    side in the loops of the reduction, which then are the outer ones."""
    return dict(_side_by_side(nest.top, nest, set(written_out(nest))))


def _side_by_side(body: Body, nest: LoopNest, done: set[Root]) -> Iterator[tuple[Body, Body]]:
    for loop in body.items:
        if not isinstance(loop, Body):
            continue
        inner, iterations = loop, loop.extent
        while isinstance(iterations, int) and len(inner.items) == 1 and isinstance(inner.items[0], Body):
            inner = inner.items[0]
            iterations = iterations * inner.extent if isinstance(inner.extent, int) else inner.extent
        if (
            isinstance(iterations, int)
            and iterations <= _SIDE_BY_SIDE
            and _is_one_reduction(inner, nest, done)
        ):
            yield loop, inner
        else:
            yield from _side_by_side(loop, nest, done)


def _is_one_reduction(body: Body, nest: LoopNest, done: set[Root]) -> bool:
    """Whether a short reduction with loops of its own is in `body`, followed by one store at most."""
    first = body.items[0]
    if not isinstance(first, Step) or first.kind != "begin" or not 3 <= len(body.items) <= 4:
        return False
    root, loop = first.root, body.items[1]
    if not root.reduced or root in done or len(root.node.results) > 1 or not isinstance(loop, Body):
        return False
    stores = all(
        isinstance(s, Step) and s.kind == "step" and isinstance(s.root.node.op.lower, Elementwise)
        for s in body.items[3:]
    )
    few = planned_size(tuple(b.extent for b in _reduced(root))) <= _SIDE_BY_SIDE
    return few and stores and _is_alone(root) and _is_short(root.node.operands[0], nest)


def _reduced(root: Root) -> list[Body]:
    """The loops that are reduced over, outermost first."""
    return root.inner.path[len(root.inner.path) - root.reduced :]


def _is_alone(root: Root) -> bool:
    """Whether nothing else is in the loops of a reduction."""
    return all(len(body.items) == 1 for body in _reduced(root))


def _is_short(v: Value, nest: LoopNest) -> bool:
    """Whether a term is cheap to compute, from two loads at most."""
    loads, pending = 0, [v]
    while pending:
        source = base(pending.pop())
        if source not in nest.inside or source.node in nest.roots:
            loads += 1
        elif not isinstance(source.node.op.lower, Elementwise) or is_work(source.node):
            return False
        else:
            pending += source.node.operands
    return loads <= 2
