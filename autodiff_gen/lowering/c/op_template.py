"""The C template of an elementwise op's record as an expression of the syntax tree, with the traits that code
generation reads instead of its text."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ...ir.node import Op
from ...ir.op_kinds import Attrs, Elementwise
from ...ir.types import DType
from . import c_ast as c
from . import c_query, c_syntax


def of_op(op: Op, attrs: Attrs, dtype: DType) -> Callable[..., c.Expr]:
    """The function from the operands of an elementwise op to its result of this dtype."""
    lower = op.lower
    assert isinstance(lower, Elementwise), op.name
    if lower.converts and dtype.kind != "b":
        return partial(c.Cast, dtype.c)
    text, called = _filled(lower.c, attrs), c_query.functions_of(lower.c)
    low, high = op.limits(attrs)
    limit = c_syntax.literal(high, dtype) if low == 0 < high else ""

    def template(*operands: c.Expr) -> c.Template:
        needs = lower.operand_precedence
        per_operand = needs if isinstance(needs, tuple) else (needs,) * len(operands)
        return c.Template(
            text,
            operands,
            lower.precedence,
            per_operand,
            called,
            limit,
            is_float=dtype.kind == "f",
            signs=op.signs,
            is_product=op.powers == (1, 1),
            selects=len(operands) == 3 and op.chooses == (1, 2),
        )

    return template


def _filled(template: str, attrs: Attrs) -> str:
    """The template with its attributes in place and its operands left."""
    for key, value in attrs.items():
        if f"{{{key}}}" in template:
            text = c_syntax.attribute(value)
            if text.startswith("-"):
                template = template.replace(f" - {{{key}}}", f" + {text[1:]}")
            if text == "1.0f":
                template = template.replace(f"{{{key}}} * ", "")
            template = template.replace(f"{{{key}}}", text)
    return template
