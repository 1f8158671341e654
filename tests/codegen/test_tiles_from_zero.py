"""Loops over the elements of a tile count from 0."""

from __future__ import annotations

import pytest
from placed_loops import placed

from autodiff_gen.codegen.c_printer import PRINTER
from autodiff_gen.ir.types import Dim
from autodiff_gen.lowering.c import c_ast as c
from autodiff_gen.lowering.loops.loop_normalization import with_tiles_from_zero

START, J = c.Name("i"), c.Name("j")
INSIDE = c.Sum((J,), (START,))
ROWS: dict[str, tuple[c.Expr, str]] = {
    "an element of the tile": (c.Element(c.Name("x"), INSIDE), "x[j]"),
    "of another array": (c.Element(c.Name("x"), J), "x[i + j]"),
    "of a matrix": (c.Element(c.Name("x"), c.Sum((c.times(c.Name("k"), 64), J, c.number(3)))), "x[k * 64 + i + j + 3]"),
    "of a transposed matrix": (c.Element(c.Name("x"), c.times(J, 64)), "x[(i + j) * 64 + 0]"),
    "the index itself": (c.Template("{0} == {1} ? 1.0f : 0.0f", (J, c.Name("label")), 10, (70, 70), ()),
                         "i + j == label ? 1.0f : 0.0f"),
    "something else": (c.Element(c.Name("x"), c.Sum((c.Name("k"),), (START,))), "x[k - i]"),
}  # fmt: skip


@pytest.mark.parametrize("what", ROWS)
def test_a_tile(what: str) -> None:
    value, text = ROWS[what]
    tile = c.For(
        "j", c.Binary("+", START, c.number(8)), (c.Assign(c.Name("y"), value),), start=START, extent=8
    )
    assert PRINTER.lines(with_tiles_from_zero(placed((c.For("i", c.number(64), (tile,), step=8),)))) == [
        "for (int32_t i = 0; i < 64; i += 8) {",
        "    for (int32_t j = 0; j < 8; j++) {",
        f"        y = {text};",
        "    }",
        "}",
    ]


def test_other_loops_stay() -> None:
    body = (c.Assign(c.Name("y"), c.Element(c.Name("x"), J)),)
    others = (
        c.For("j", c.number(8), body),
        c.For("j", START, body, start=c.Name("k")),
        c.For("j", c.Binary("+", START, c.Name("n")), body, start=START, extent=Dim(1, 8)),
    )
    assert with_tiles_from_zero(others) == others
