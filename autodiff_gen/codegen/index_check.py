"""The check of an index in C: the loops that compute its elements compare them with their limits, and store none.

for (int32_t i = 0; i < n; i++) {
    if (label[i] >= 10) {
        return MNIST_ERR_LABEL;
    }
}
"""

from __future__ import annotations

from dataclasses import replace

from ..ir.graph import Check
from ..ir.types import DType
from ..lowering.c import c_ast as c
from .entry_body import EntryBody
from .program import CheckPlan


def index_check(plan: CheckPlan, body: EntryBody, status: str) -> c.Statements:
    """The statements that return `status` where an element is out of range."""
    steps = [s for step in body.plan.steps for s in body.statements(step) if not isinstance(s, c.Comment)]
    (index,) = body.plan.graph.outputs.values()
    place = body.place(index)
    found: list[c.Statement] = []
    for s in steps:
        found += _compared(s, place, plan.check, index.dtype, status)
    return c.braced(found)


def _compared(s: c.Statement, place: c.Expr, check: Check, dtype: DType, status: str) -> c.Statements:
    """A statement, with comparisons in place of what it stores in a place."""
    if isinstance(s, c.For | c.Block):
        body = tuple(t for inner in s.body for t in _compared(inner, place, check, dtype, status))
        return (replace(s, body=body),)
    if isinstance(s, c.If):
        then, otherwise = (
            tuple(t for inner in part for t in _compared(inner, place, check, dtype, status))
            for part in (s.then, s.otherwise)
        )
        return (replace(s, then=then, otherwise=otherwise),)
    if not (isinstance(s, c.Assign) and isinstance(s.target, c.Element) and s.target.array == place):
        return (s,)
    value = s.value.operand if isinstance(s.value, c.Cast) else s.value
    if isinstance(value, c.Name | c.Element | c.Literal):
        return (_rejected(value, check, dtype, status),)
    assert isinstance(place, c.Name)
    local = c.declare("int32_t", place.text, value, const=True)
    return c.braced([local, _rejected(place, check, dtype, status)])


def _rejected(index: c.Expr, check: Check, dtype: DType, status: str) -> c.If:
    above = c.Binary(">", index, c.number(check.high))
    if check.low == 0:
        above = c.Binary(">=", index, c.number(check.high + 1))
    below = c.Binary("<", index, c.number(check.low))
    test = above if dtype.kind == "u" and check.low == 0 else c.Binary("||", below, above)
    return c.If(test, (c.Return(c.Name(status)),))
