"""Sums of masked values are added up where the mask does not make them 0, if no other statement is in the way."""

from __future__ import annotations

from dataclasses import replace

import pytest
from op_expressions import computed, reduced
from placed_loops import counted, placed

from autodiff_gen.codegen.c_printer import PRINTER
from autodiff_gen.kernels import registry
from autodiff_gen.lowering.c import c_ast as c
from autodiff_gen.lowering.loops.masked_sums import with_masked_sums

SCALAR = replace(registry.host_cost(), vector=1)
ZERO, MASKED = c.Literal("0.0f"), c.Name("masked")


def at(array: str) -> c.Element:
    return c.Element(c.Name(array), c.Name("i"))


def selected(*operands: c.Expr) -> c.Template:
    return computed("where", *operands)


def times(a: c.Expr, b: c.Expr) -> c.Template:
    return computed("mul", a, b)


def added(name: str, term: c.Expr, reduction: str = "sum") -> c.StepTemplate:
    return reduced(reduction, c.Name(name), term)


LOW, HIGH = c.Binary("<=", at("y"), ZERO), c.Binary(">=", at("y"), c.Literal("6.0f"))
MASK = selected(LOW, ZERO, at("d"))


def lines(*body: c.Statement, value: c.Expr = MASK, vector: int = 1) -> list[str]:
    loop = counted("i", 64, (c.declare("float", "masked", value, const=True), *body))
    (found,) = with_masked_sums([placed((loop,))], replace(SCALAR, vector=vector))
    return [line.strip() for line in PRINTER.lines(found)[1:-1]]


def test_sums_and_products_are_added_where_the_mask_is_not_0() -> None:
    assert lines(added("sum", MASKED), added("product", times(MASKED, at("x")))) == [
        "float masked = 0.0f;",
        "if (!(y[i] <= 0.0f)) {",
        "masked = d[i];",
        "sum += masked;",
        "product += masked * x[i];",
        "}",
    ]


def test_all_conditions_of_nested_selections_hold() -> None:
    both = selected(LOW, ZERO, selected(HIGH, ZERO, at("d")))
    assert "if (!(y[i] <= 0.0f) && !(y[i] >= 6.0f)) {" in lines(added("sum", MASKED), value=both)
    otherwise = selected(c.Binary(">", at("y"), ZERO), at("d"), ZERO)
    assert "if (y[i] > 0.0f) {" in lines(added("sum", MASKED), value=otherwise)


def test_sums_precede_what_they_do_not_depend_on() -> None:
    found = lines(c.Assign(at("z"), MASKED), added("sum", times(MASKED, c.Name("scale"))))
    assert found[-1] == "z[i] = masked;"


STAYS: dict[str, tuple[c.Statement, ...]] = {
    "another kind of sum": (added("sum", MASKED, "amax"),),
    "a value other than 0 is added": (added("sum", c.Binary("+", MASKED, at("x"))),),
    "a factor is stored before": (c.Assign(at("x"), MASKED), added("sum", times(MASKED, at("x")))),
    "a factor is declared before": (
        c.declare("float", "factor", at("x"), const=True),
        added("sum", times(MASKED, c.Name("factor"))),
    ),
    "the sum is read before": (c.Assign(at("z"), c.Name("sum")), added("sum", MASKED)),
    "no sum": (c.Assign(at("z"), MASKED),),
}


@pytest.mark.parametrize("case", STAYS)
def test_what_depends_on_another_statement_stays(case: str) -> None:
    assert "if" not in " ".join(lines(*STAYS[case]))


def test_vectors_compute_all_sums() -> None:
    assert "if" not in " ".join(lines(added("sum", MASKED), vector=8))
