"""Sums of masked values skip what the mask makes 0, where loops are not computed in vectors.

    const float d = y[i] <= 0.0f              float d = 0.0f;
            ? 0.0f : dy[i];           ->      if (!(y[i] <= 0.0f)) {
    sum += d;                                     d = dy[i];
    product += d * x[i];                          sum += d;
                                                  product += d * x[i];
                                              }

The branch is there in any case, as such cores do not select between floats. The sums are the same to the last bit, but
where a factor of a masked value is infinite or NaN: their product, which is NaN, is not added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from ...targets.cost_table import CostTable
from ..c import c_ast as c
from ..c import c_query
from .accesses import accesses_of, targets, with_innermost_loops

ZERO = c.Literal("0.0f")


def with_masked_sums(steps: Sequence[c.Statements], cost: CostTable) -> tuple[c.Statements, ...]:
    """The steps of an entry with such loops, unless the target computes loops in vectors."""
    if cost.vector != 1:
        return tuple(steps)
    return tuple(with_innermost_loops(step, _changed) for step in steps)


def _changed(loop: c.For) -> c.For:
    body: list[c.Statement] = []
    rest = list(loop.body)
    while rest:
        statement = rest.pop(0)
        match statement:
            case c.Declare("float", ((name, c.Template() as value),)):
                tests, masked = _masked(value)
                sums = _sums(c.Name(name), rest) if tests else []
                if sums:
                    test = reduce(lambda a, b: c.Binary("&&", a, b), tests)
                    body.append(c.declare("float", name, ZERO))
                    body.append(c.If(test, (c.Assign(c.Name(name), masked), *sums)))
                    rest = [s for s in rest if not any(s is moved for moved in sums)]
                    continue
        body.append(statement)
    return loop if c_query.unchanged(loop.body, body) else replace(loop, body=tuple(body))


def _masked(value: c.Expr) -> tuple[list[c.Expr], c.Expr]:
    """The conditions under which a value is not a selected 0, and what it is then."""
    tests: list[c.Expr] = []
    while True:
        match value:
            case c.Template(operands=(test, then, otherwise), selects=True):
                if then == ZERO:
                    tests.append(c.Unary("!", test))
                    value = otherwise
                    continue
                if otherwise == ZERO:
                    tests.append(test)
                    value = then
                    continue
        return tests, value


def _sums(value: c.Name, after: Sequence[c.Statement]) -> list[c.StepTemplate]:
    """The sums to which a value, or a multiple of it, is added, and that may precede the other statements."""
    found: list[c.StepTemplate] = []
    between: list[c.Statement] = []
    for statement in after:
        if not isinstance(statement, (c.Assign, c.Declare, c.StepTemplate)):
            break
        is_sum = isinstance(statement, c.StepTemplate) and _is_added(value, statement)
        if is_sum and not any(_depend(statement, other) for other in between):
            assert isinstance(statement, c.StepTemplate)
            found.append(statement)
        else:
            between.append(statement)
    return found


def _is_added(value: c.Name, step: c.StepTemplate) -> bool:
    """Whether a statement adds nothing where a value is 0."""
    match step.x:
        case c.Template(operands=factors, is_product=True) if value in factors:
            return step.identifier == "+"
    return step.identifier == "+" and step.x == value


def _depend(a: c.Statement, b: c.Statement) -> bool:
    """Whether one of two statements may write what the other one reads or writes."""
    mine, others = accesses_of(a), accesses_of(b)
    if mine is None or others is None:
        return True
    if any((m.is_written or o.is_written) and m.may_be(o) for m in mine for o in others):
        return True
    return not _written(a).isdisjoint(c_query.names(b)) or not _written(b).isdisjoint(c_query.names(a))


def _written(statement: c.Statement) -> set[str]:
    """The variables that a statement declares or assigns to."""
    assigned = {target.text for target in targets(statement) if isinstance(target, c.Name)}
    return assigned.union(c_query.declared(statement))
