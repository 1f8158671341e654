"""Two loops become one where rows follow each other in all arrays."""

from __future__ import annotations

import pytest
from placed_loops import counted, placed

from autodiff_gen.codegen.c_printer import PRINTER
from autodiff_gen.ir.types import Dim, Size
from autodiff_gen.lowering.c import c_ast as c
from autodiff_gen.lowering.loops.collapsed_loops import with_collapsed_loops

ROW, COLUMN, N = c.Name("i"), c.Name("j"), Dim(1, 8)


def at(name: str, row: int, column: int = 1) -> c.Element:
    return c.Element(c.Name(name), c.total([c.times(ROW, row), c.times(COLUMN, column)]))


def loops(source: c.Expr, rows: Size = N, target: c.Expr | None = None) -> c.Statements:
    inner = counted("j", 16, (c.Assign(target or at("y", 16), source),))
    return placed((counted("i", rows, (inner,)),))


BACKWARDS = c.Element(
    c.Name("x"),
    c.Sum((c.times(c.Sum((c.number(3),), (ROW,)), 16), c.Sum((c.number(15),), (COLUMN,)))),
)
GATHERED = c.Element(c.Name("x"), c.Sum((c.times(c.Element(c.Name("l"), ROW), 16), COLUMN)))
LESS = c.Element(c.Name("x"), c.Sum((c.number(496), COLUMN), (c.times(ROW, 16),)))
COLLAPSED = {
    "n rows": (loops(at("x", 16)), "16 * n", "y[i] = x[i];"),
    "rows of known number": (loops(at("x", 16), 3), "48", "y[i] = x[i];"),
    "a multiple of n rows": (loops(at("x", 16), 3 * N), "48 * n", "y[i] = x[i];"),
    "every second element": (loops(at("x", 32, 2)), "16 * n", "y[i] = x[i * 2 + 0];"),
    "one number": (loops(c.Element(c.Name("x"), c.number(0))), "16 * n", "y[i] = x[0];"),
}


@pytest.mark.parametrize("case", COLLAPSED)
def test_loops_that_become_one(case: str) -> None:
    body, stop, statement = COLLAPSED[case]
    assert PRINTER.lines(with_collapsed_loops(body)) == [
        f"for (int32_t i = 0; i < {stop}; i++) {{",
        f"    {statement}",
        "}",
    ]


@pytest.mark.parametrize(
    "source",
    [
        at("x", 20),
        GATHERED,
        BACKWARDS,
        LESS,
        at("x", 1, 16),
        at("x", 16, 0),
        at("x", 0),
        c.Binary("+", at("x", 16), COLUMN),
    ],
    ids=[
        "apart",
        "gathered",
        "backwards",
        "less",
        "transposed",
        "of the row",
        "of the column",
        "used as a number",
    ],
)
def test_loops_that_stay(source: c.Expr) -> None:
    assert with_collapsed_loops(loops(source)) == loops(source)
