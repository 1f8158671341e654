"""If-conversion: innermost loops compute both alternatives of a selection, so that compilers may vectorise them.

    AG_IVDEP                                 AG_IVDEP
    for (i = 0; i < 64; i++) {               for (i = 0; i < 64; i++) {
        y[i] = x[i] <= 0.0f              ->      const float other = a[i] + b[i];
                ? 0.0f : a[i] + b[i];            y[i] = x[i] <= 0.0f ? 0.0f : other;
    }                                        }

A compiler does not know that an element may be read where C does not read it, or arithmetic done that may raise a
floating-point exception, and branches. The plan knows: where the condition depends on data alone, not on indices, any
element may be read in any iteration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...ir.identifiers import unused
from ...lowering.c import c_ast as c
from ...lowering.c import c_query
from .loop_accesses import Memory, Pointers, linear, memory_of, with_innermost_loops


def with_both_alternatives(
    steps: Sequence[c.Statements], floats: Mapping[str, Memory]
) -> tuple[c.Statements, ...]:
    """The steps of an entry with such loops. floats: arguments and states that are arrays of floats, as C spells
    them."""
    pointers: Pointers = dict(floats)
    return tuple(with_innermost_loops(step, pointers, _changed) for step in steps)


def _changed(loop: c.For, pointers: Pointers, _: bool) -> c.Statements:
    elements = [node for node in c_query.nodes(loop.body) if isinstance(node, c.Element)]
    indices = {loop.variable, *c_query.names([e.index for e in elements])}
    taken = c_query.variables(loop.body)
    body: list[c.Statement] = []
    for statement in loop.body:
        if not any(_is_guarded(node, indices) for node in c_query.nodes(statement)):
            alternatives = _Alternatives(pointers, taken, body)
            statement = c_query.rewritten(statement, alternatives.named)
        body.append(statement)
    return (replace(loop, body=tuple(body)),)


def _is_guarded(node: Any, indices: set[str]) -> bool:
    """Whether a condition depends on indices, so that it may decide which elements exist."""
    if isinstance(node, c.Conditional):
        return True
    if not isinstance(node, c.Template) or not node.selects:
        return False
    condition = c_query.rewritten(
        node.operands[0], lambda part: c.number(0) if isinstance(part, c.Element) else part
    )
    return not indices.isdisjoint(c_query.names(condition))


@dataclass(frozen=True)
class _Alternatives:
    pointers: Pointers
    taken: set[str]
    before: list[c.Statement]  # the statements before this one

    def named(self, node: Any) -> Any:
        """A selection whose alternatives are variables, where they are more than that."""
        if not isinstance(node, c.Template) or not node.selects:
            return node
        condition, *values = node.operands
        return replace(node, operands=(condition, *map(self._name, values)))

    def _name(self, value: c.Expr) -> c.Expr:
        if isinstance(value, c.Name | c.Literal):
            return value
        elements = [e for e in c_query.nodes(value) if isinstance(e, c.Element)]
        if any(linear(e.index) is None for e in elements):
            return value
        if not self._is_float(value):
            return value
        name = unused("other", self.taken)
        self.taken.add(name)
        self.before.append(c.declare("float", name, value, const=True))
        return c.Name(name)

    def _is_float(self, value: Any) -> bool:
        """Whether a value is known to be a float."""
        match value:
            case c.Literal() | c.Template():
                return value.is_float
            case c.Element(array):
                found = memory_of(array, self.pointers)
                return found is not None and found[0].is_float
            case c.Cast(c_type):
                return c_type == "float"
        return any(map(self._is_float, c_query.children(value)))
