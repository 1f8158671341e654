"""How long the loops of generated C are in which functions of ag_math.h are called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...kernels.contract import FUNCTIONS
from ...lowering.c import c_ast as c
from ...lowering.c import c_query

_CALLED = {f"ag_{name}" for name in FUNCTIONS}


def all_short(statements: Sequence[c.Statement | c.Statements], batch: int, vectors: int) -> bool:
    """Whether functions are called, and each in a loop of fewer iterations than `vectors`, or in one around other
    loops, which compilers do not vectorise: elsewhere ag_math.h keeps its functions free of branches. `batch`: the
    most that a number of iterations known at run time can be. `vectors` is 0 where no loop is long enough.
    """
    if not vectors:
        return any(map(_calls_function, c_query.nodes(statements)))
    _, called, short = _scan(statements, batch, vectors)
    return called and short


def _calls_function(node: Any) -> bool:
    return not _CALLED.isdisjoint(c_query.called_by(node))


def _scan(tree: Any, batch: int, vectors: int) -> tuple[bool, bool, bool]:
    """Whether a tree has loops, whether it calls functions, and whether each is in a short loop or outside of all."""
    loops, called, short = False, False, True
    for node in c_query.nodes(tree, stop=c.For):
        if isinstance(node, c.For):
            inner_loops, inner_called, inner_short = _scan(node.body, batch, vectors)
            innermost = inner_called and not inner_loops
            long = innermost and 0 < vectors <= iterations(node, batch, vectors)
            loops, called, short = True, called or inner_called, short and inner_short and not long
        elif not called:
            called = _calls_function(node)
    return loops, called, short


def iterations(loop: c.For, batch: int, unknown: int) -> int:
    """How often a loop is run at most; `unknown` where it does not count up from 0, or by a number
    from anywhere, to a number or a multiple of n."""
    match loop:
        case c.For(stop=c.Literal(text), start=c.Literal("0"), step=1):
            return int(text)
        case c.For(stop=c.Name("n" | "count"), start=c.Literal("0"), step=1):
            return batch
        case c.For(stop=c.Binary("*", c.Literal(text), c.Name("n" | "count")), start=c.Literal("0"), step=1):
            return int(text) * batch
        case c.For(stop=c.Binary("+", first, c.Literal(text)), start=start, step=1) if first == start:
            return int(text)
    return unknown
