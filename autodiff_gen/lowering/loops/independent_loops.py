"""Mark loops of generated C that have independent iterations or reduce rows of memory to scalars (AG_IVDEP and
AG_REDUCTION in runtime/ag_loops.h). Iterations are independent if none reads or writes an element that another one
writes.

A compiler sees pointers into one arena, and checks at run time whether they overlap, or gives up where they are many.
The plan knows: two arrays are apart, or only the iteration that replaces an element reads it. Partial results of
a row's sum or its maximum can be combined: compilers that may reorder the additions compute them in vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..c import c_ast as c
from ..c import c_query
from .accesses import accesses_of, are_independent, with_innermost_loops
from .block_moves import UNROLLED
from .pointed_memory import Access
from .vector_loops import iterations


def with_independent_loops(
    steps: Sequence[c.Statements], shortest: int, reorder: bool = False, vector: int = 0
) -> tuple[c.Statements, ...]:
    """The steps of an entry with marks at innermost loops of at least `shortest` iterations: at independent iterations
    over several arrays, and with `reorder` at reductions of rows. Unchanged if `shortest` is 0. reorder: whether sums
    may be reordered; vector: loops over one or two vectors of so many elements are not unrolled, if it is not 0."""
    marks = _Marks(shortest, reorder, vector)
    return tuple(with_innermost_loops(step, marks.marked) if shortest else step for step in steps)


@dataclass(frozen=True)
class _Marks:
    shortest: int
    reorder: bool
    vector: int

    def marked(self, loop: c.For) -> c.For:
        count = iterations(loop, 1 << 31)
        accesses = accesses_of(loop.body) if count >= self.shortest else None
        if accesses is None or not are_independent(accesses, loop.variable, count):
            return loop
        arrays = {a.memory for a in accesses if not a.memory.is_local}
        rows = self.reorder and all(_is_in_row(a, loop.variable) for a in accesses)
        # compilers find the dependences within one array themselves
        reduced = _reduction(loop) if rows else None
        rolled = loop.rolled or (reduced is None and self._is_unrolled_too_early(loop, count))
        return replace(loop, independent=len(arrays) > 1, reduction=reduced, rolled=rolled)

    def _is_unrolled_too_early(self, loop: c.For, count: int) -> bool:
        """Whether compilers unroll a loop of whole vectors before they vectorise. They then vectorise the loop around
        it, whose iterations are apart in memory."""
        constant = isinstance(loop.from_zero, int)
        return self.vector > 0 and constant and count <= UNROLLED and count % self.vector == 0


def _is_in_row(access: Access, variable: str) -> bool:
    """Whether an access is to the same element in all iterations, or to the next one in each."""
    return access.step(variable) in (0, access.memory.element)


def _reduction(loop: c.For) -> c.Reduction | None:
    """The reduction of an innermost loop, if iterations pass nothing else on in variables. None without a reduction, or
    for reductions of different kinds."""
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
