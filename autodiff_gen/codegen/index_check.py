"""The check of an index in C: the loops that compute its elements compare them with their limits, and store none.

for (int32_t i = 0; i < n; i++) {
    if (label[i] >= 10) {
        return MNIST_ERR_LABEL;
    }
}
"""

from __future__ import annotations

from typing import Any

from ..ir.graph import Check
from ..ir.types import DType
from ..lowering.c import c_ast as c
from ..lowering.c import c_query
from .entry_body import EntryBody
from .program import CheckPlan


def index_check(plan: CheckPlan, body: EntryBody, status: str) -> c.Statements:
    """The statements that return `status` where an element is out of range."""
    steps = tuple(
        s for step in body.plan.steps for s in body.statements(step) if not isinstance(s, c.Comment)
    )
    (index,) = body.plan.graph.outputs.values()
    place = body.place(index)

    def compared(node: Any) -> Any:
        """A comparison, in place of the statement that stores the index."""
        match node:
            case c.Assign(c.Element(array), value) if array == place:
                value = value.operand if isinstance(value, c.Cast) else value
                if isinstance(value, c.Name | c.Element | c.Literal):
                    return (_rejected(value, plan.check, index.dtype, status),)
                assert isinstance(place, c.Name)
                local = c.declare("int32_t", place.text, value, const=True)
                return c.braced([local, _rejected(place, plan.check, index.dtype, status)])
        return node

    return c.braced(c_query.rewritten(steps, compared))


def _rejected(index: c.Expr, check: Check, dtype: DType, status: str) -> c.If:
    above = c.Binary(">", index, c.number(check.high))
    if check.low == 0:
        above = c.Binary(">=", index, c.number(check.high + 1))
    below = c.Binary("<", index, c.number(check.low))
    test = above if dtype.kind == "u" and check.low == 0 else c.Binary("||", below, above)
    return c.If(test, (c.Return(c.Name(status)),))
