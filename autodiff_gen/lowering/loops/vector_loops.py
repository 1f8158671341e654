"""How long the loops of generated C are in which functions of ag_math.h are called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.types import planned_size
from ...kernels.contract import FUNCTIONS
from ..c import c_ast as c
from ..c import c_query

_CALLED = {f"ag_{name}" for name in FUNCTIONS}


def all_short(statements: Sequence[c.Statement | c.Statements], vectors: int) -> bool:
    """Whether functions of ag_math.h are called, but none in an innermost loop of `vectors` or more iterations.
    Compilers vectorise only such loops; for these, ag_math.h keeps its functions free of branches. `vectors` is 0
    if no loop is long enough for vectors.
    """
    if not vectors:
        return any(map(_calls_function, c_query.nodes(statements)))
    _, called, short = _scan(statements, vectors)
    return called and short


def _calls_function(node: Any) -> bool:
    return not _CALLED.isdisjoint(c_query.called_by(node))


def _scan(tree: Any, vectors: int) -> tuple[bool, bool, bool]:
    """Whether a tree has loops, whether it calls functions, and whether each is in a short loop or outside of all."""
    loops, called, short = False, False, True
    for node in c_query.nodes(tree, stop=c.For):
        if isinstance(node, c.For):
            inner_loops, inner_called, inner_short = _scan(node.body, vectors)
            innermost = inner_called and not inner_loops
            long = innermost and 0 < vectors <= iterations(node, vectors)
            loops, called, short = True, called or inner_called, short and inner_short and not long
        elif not called:
            called = _calls_function(node)
    return loops, called, short


def iterations(loop: c.For, unknown: int) -> int:
    """The iterations of a loop, for the largest batch; `unknown` if the loop has no extent, or a step other than 1."""
    return unknown if loop.extent is None or loop.step != 1 else planned_size((loop.extent,))
