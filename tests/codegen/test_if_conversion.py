"""Innermost loops compute both alternatives of a selection, unless its condition depends on indices."""

from __future__ import annotations

import pytest
from op_expressions import computed
from placed_loops import counted, placed

from autodiff_gen.codegen.c_printer import PRINTER
from autodiff_gen.ir.types import DType, f32, s32
from autodiff_gen.lowering.c import c_ast as c
from autodiff_gen.lowering.loops.if_conversion import with_both_alternatives

INDEX = c.Name("i")


def at(array: str, index: c.Expr = INDEX) -> c.Element:
    return c.Element(c.Name(array), index)


def selected(condition: c.Expr, *values: c.Expr, dtype: DType = f32) -> c.Template:
    return computed("where", condition, *values, dtype=dtype)


ZERO = c.Literal("0.0f")
MASK = c.Binary("<=", at("x"), ZERO)
SUM = c.Binary("+", at("a"), at("b"))
STAYS = {
    "the condition depends on the index": selected(c.Binary("<", INDEX, c.number(3)), ZERO, at("a")),
    "a selection around it does": selected(
        c.Binary("<", INDEX, c.number(3)), ZERO, selected(MASK, ZERO, at("a"))
    ),
    "the condition depends on a row that is looked up": selected(
        c.Binary("<", c.Name("row"), c.number(3)), ZERO, at("a", c.Name("row"))
    ),
    "the index is read": selected(MASK, ZERO, at("a", at("x"))),
    "integers are selected": selected(MASK, c.number(0), at("labels"), dtype=s32),
    "an integer of a float is selected": selected(
        MASK, c.number(0), c.Binary("+", computed("to_s32", at("a"), dtype=s32), at("labels")), dtype=s32
    ),
    "it only depends on a float": selected(
        MASK,
        c.number(0),
        c.Binary("+", selected(MASK, c.number(1), c.number(2), dtype=s32), at("labels")),
        dtype=s32,
    ),
    "numbers": selected(MASK, ZERO, c.Literal("1.0f")),
}


def loop(value: c.Expr, *, independent: bool = True) -> c.For:
    (found,) = placed((counted("i", 64, (c.Assign(at("y"), value),), independent=independent),))
    assert isinstance(found, c.For)
    return found


def lines(statement: c.For, shortest: int = 64) -> list[str]:
    (found,) = with_both_alternatives([(statement,)], shortest)
    return PRINTER.lines(found)


def test_both_alternatives_are_computed() -> None:
    inner = selected(MASK, ZERO, at("b"))
    assert lines(loop(selected(MASK, at("a"), inner)))[-2] == (
        "    y[i] = ag_select(x[i] <= 0.0f, a[i], ag_select(x[i] <= 0.0f, 0.0f, b[i]));"
    )


def test_masks_in_an_alternative_are_read_too() -> None:
    inner = selected(at("ties"), c.Name("d_max"), ZERO)
    assert lines(loop(selected(at("mask"), ZERO, inner)))[-2] == (
        "    y[i] = ag_select(mask[i], 0.0f, ties[i] ? d_max : 0.0f);"
    )


def test_arithmetic_of_one_op() -> None:
    leaky = computed("leaky_relu", at("x"), negative_slope=0.25)
    assert lines(loop(leaky))[-2] == "    y[i] = ag_select(x[i] > 0.0f, x[i], x[i] * 0.25f);"
    leaky = computed("leaky_relu", c.Sum((at("x"), at("a"))), negative_slope=0.25)
    assert "(x[i] + a[i]) * 0.25f" in lines(loop(leaky))[-2]
    for name in ("relu", "elu", "logsigmoid"):  # numbers; functions; no selection of a whole expression
        stays = computed(name, at("x"), **({"alpha": 1.0} if name == "elu" else {}))
        assert lines(loop(stays)) == PRINTER.lines((loop(stays),))


@pytest.mark.parametrize("shortest", [0, 65])
def test_loops_that_no_compiler_makes_vectors_of(shortest: int) -> None:
    stays = loop(selected(MASK, ZERO, SUM))
    assert lines(stays, shortest) == PRINTER.lines((stays,))


@pytest.mark.parametrize("case", STAYS)
def test_what_a_condition_may_guard_stays(case: str) -> None:
    assert lines(loop(STAYS[case])) == PRINTER.lines((loop(STAYS[case]),))


def test_loops_over_one_array_and_short_loops_do_so_too() -> None:
    dependent = lines(loop(selected(MASK, ZERO, SUM), independent=False))
    assert dependent[1:] == lines(loop(selected(MASK, ZERO, SUM)))[2:]
