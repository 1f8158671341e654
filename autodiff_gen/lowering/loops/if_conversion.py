"""If-conversion: innermost loops compute both alternatives of a selection, so that compilers may vectorise them.

    AG_IVDEP                                      AG_IVDEP
    for (i = 0; i < 64; i++) {                    for (i = 0; i < 64; i++) {
        y[i] = x[i] <= 0.0f ? 0.0f : a[i] + b[i];     y[i] = ag_select(x[i] <= 0.0f, 0.0f, a[i] + b[i]);
    }                                             }

A compiler makes branches, because it does not know whether it may read elements that C does not read, and whether it
may do arithmetic that could raise a floating-point exception. The plan knows: where the condition depends only on data,
not on indices, any element may be read in any iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...ir.op_kinds import ATOM, SELECT
from ..c import c_ast as c
from ..c import c_query
from .accesses import with_innermost_loops
from .vector_loops import iterations


def with_both_alternatives(steps: Sequence[c.Statements], shortest: int) -> tuple[c.Statements, ...]:
    """The steps of an entry, in which innermost loops of at least `shortest` iterations compute both alternatives;
    unchanged if `shortest` is 0."""

    def change(loop: c.For) -> c.For:
        return _changed(loop) if iterations(loop, shortest) >= shortest else loop

    return tuple(with_innermost_loops(step, change) if shortest else step for step in steps)


def _changed(loop: c.For) -> c.For:
    elements = [node for node in c_query.nodes(loop.body) if isinstance(node, c.Element)]
    indices = {loop.variable, *c_query.names([e.index for e in elements])}
    body = [
        statement
        if any(_is_guarded(node, indices) for node in c_query.nodes(statement))
        else c_query.rewritten(statement, _selected)
        for statement in loop.body
    ]
    return replace(loop, body=tuple(body))


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


def _selected(node: Any) -> Any:
    """A selection of floats by ag_select, where an alternative is more than a variable or a number."""
    if not isinstance(node, c.Template) or node.choice is None or node.calls or not node.is_float:
        return node
    condition, *values = node.choice
    if not any(_is_computed(text, condition, node.operands) for text in values):
        return node
    elements = [e for e in c_query.nodes(node.operands) if isinstance(e, c.Element)]
    if any(e.access is None or e.access.steps is None for e in elements):
        return node
    text = f"ag_select({condition}, {', '.join(values)})"
    names = [f"{{{k}}}" for k in range(len(node.operands))]
    arguments = {name for name in names if name in node.choice and text.count(name) == 1}
    needs = [SELECT if name in arguments else need for name, need in zip(names, node.needs, strict=True)]
    return replace(node, text=text, precedence=ATOM, needs=tuple(needs), calls=("ag_select",))


def _is_computed(text: str, condition: str, operands: Sequence[c.Expr]) -> bool:
    """Whether an alternative of a template is computed, or read from an array that the condition does not read."""
    for k, operand in enumerate(operands):
        if text == f"{{{k}}}":
            return text not in condition and not isinstance(operand, c.Name | c.Literal)
    return " " in text
