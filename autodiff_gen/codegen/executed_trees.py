"""Evaluation of C trees: values of integer expressions, and the steps of loops through memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from ..lowering.c import c_ast as c
from ..lowering.c import c_query

SELECT = 4  # a comparison of floats, its flags, and the selection


def value_of(e: c.Expr, known: Mapping[str, float]) -> float | None:
    """The value of an integer expression; None if a variable is unknown. A conditional has the value of its last
    operand, such as the size of a whole micro-batch."""
    if isinstance(e, c.Literal):
        try:
            return float(e.text.rstrip("fu"))
        except ValueError:
            return None
    if isinstance(e, c.Name):
        return known.get(e.text)
    if isinstance(e, c.Cast):
        return value_of(e.operand, known)
    if isinstance(e, c.Sum):
        plus = [value_of(x, known) for x in e.terms]
        minus = [value_of(x, known) for x in e.less]
        if None in plus or None in minus:
            return None
        return sum(plus) - sum(minus)  # type: ignore[arg-type]
    if isinstance(e, c.Conditional):
        return value_of(e.otherwise, known)
    if isinstance(e, c.Binary):
        a, b = value_of(e.left, known), value_of(e.right, known)
        if a is None or b is None:
            return None
        if e.symbol == "/":
            return a // b if b else None
        return {"*": a * b, "+": a + b, "-": a - b}.get(e.symbol)
    return None


def is_product(e: c.Expr) -> bool:
    if isinstance(e, c.Template):
        return e.is_product
    return isinstance(e, c.Binary) and e.symbol == "*"


def coefficient(e: c.Expr, variable: str) -> float:
    """The factor of a variable in a sum; 0 where it is in another form."""
    if isinstance(e, c.Name):
        return float(e.text == variable)
    if isinstance(e, c.Sum):
        return sum(coefficient(x, variable) for x in e.terms)
    if isinstance(e, c.Binary) and e.symbol == "*" and isinstance(e.right, c.Literal):
        return coefficient(e.left, variable) * float(e.right.text)
    if isinstance(e, c.Cast):
        return coefficient(e.operand, variable)
    return 0.0


def array_of(e: c.Element) -> str:
    return " ".join(c_query.words(e.array))


def stores(statements: Sequence[c.Statement], local: set[str]) -> bool:
    """Whether a statement stores to memory, so that compilers load operands again in the next iteration. local:
    names of arrays that are in registers."""
    arrays = local | {s.name for s in c_query.statements(statements) if isinstance(s, c.Array)}
    for s in c_query.statements(statements):
        target = s.target if isinstance(s, c.Assign) else None
        if isinstance(target, c.Member):
            return True
        if isinstance(target, c.Element) and not (
            isinstance(target.array, c.Name) and target.array.text in arrays
        ):
            return True
    return False


@cache
def operators(text: str) -> int:
    """The number of operations in the text of a template; a selection counts as SELECT operations."""
    signs = ("+", "-", "*", "/", "&&", "||", "&", "|", ">>", "<<", "^", "<", ">", "<=", ">=", "==", "!=")
    found = sum(text.count(f" {sign} ") for sign in signs) + text.startswith(("-", "!"))
    return found + (SELECT - 1) * text.count(" ? ")
