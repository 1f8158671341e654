"""How long the loops of generated C are in which functions of ag_math.h are called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..kernels.contract import FUNCTIONS
from ..lowering import c_ast as c
from ..lowering import c_query

VECTOR = 16  # iterations from which vectors pay on any core
_CALLED = {f"ag_{name}" for name in FUNCTIONS}


def all_short(statements: Sequence[c.Statement | c.Statements], batch: int, vectors: int) -> bool:
    """Whether functions are called, and each in a loop of fewer iterations than `vectors`, or in one around other
    loops, which compilers do not vectorise: elsewhere ag_math.h keeps its functions free of branches. `batch`: the
    most that a number of iterations known at run time can be.
    """
    if not c_query.calls(statements) & _CALLED:
        return False
    innermost = (loop for loop in _loops(statements) if not any(_loops(loop.body)))
    return all(
        iterations(loop, batch, vectors) < vectors for loop in innermost if c_query.calls(loop) & _CALLED
    )


def _loops(statements: Sequence[c.Statement | c.Statements]) -> Iterator[c.For]:
    return (node for node in c_query.nodes(statements) if isinstance(node, c.For))


def iterations(loop: c.For, batch: int, unknown: int) -> int:
    """How often a loop is run at most; `unknown` where it does not count up from 0 to a number or a multiple of n."""
    match loop:
        case c.For(stop=c.Literal(text), start=c.Literal("0"), step=1):
            return int(text)
        case c.For(stop=c.Name("n"), start=c.Literal("0"), step=1):
            return batch
        case c.For(stop=c.Binary("*", c.Literal(text), c.Name("n")), start=c.Literal("0"), step=1):
            return int(text) * batch
    return unknown
