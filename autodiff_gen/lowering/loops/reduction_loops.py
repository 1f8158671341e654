"""Which loops of generated C reduce rows of memory to scalars, whose partial results can be combined: a row's sum or
its maximum. Compilers that may reorder the additions compute them in vectors (AG_REDUCTION in runtime/ag_loops.h)."""

from __future__ import annotations

from collections.abc import Iterator

from ..c import c_ast as c
from ..c import c_query


def reduction(loop: c.For) -> c.Reduction | None:
    """What an innermost loop reduces, where that is all that one iteration passes to the next in variables; None where
    it is nothing, or several reductions of different kinds."""
    steps = [s for s in loop.body if isinstance(s, c.StepTemplate)]
    others = [s for s in loop.body if s not in steps]
    accumulators = [value for step in steps for value in step.accumulators]
    names = tuple(a.text for a in accumulators if isinstance(a, c.Name))
    identifiers = {step.identifier for step in steps}
    if len(identifiers) != 1 or "" in identifiers or len(names) != len(accumulators):
        return None
    if not all(_is_private(s) for s in others) or set(names) & set(_read(loop)):
        return None
    return c.Reduction(identifiers.pop(), names)


def _is_private(statement: c.Statement) -> bool:
    """Whether a statement assigns to no variable from outside of the loop."""
    match statement:
        case c.Declare():
            return not statement.is_pointer
        case c.Assign(target):
            return isinstance(target, c.Element)
    return False


def _read(loop: c.For) -> Iterator[str]:
    """The variables in the terms of reductions and in all other statements."""
    for statement in loop.body:
        parts = (statement.x, statement.index) if isinstance(statement, c.StepTemplate) else statement
        yield from (node.text for node in c_query.nodes(parts) if isinstance(node, c.Name))
