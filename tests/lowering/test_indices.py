"""Indices of elements: how they move along variables, and the expressions that C computes them by."""

from __future__ import annotations

import pytest

from autodiff_gen.codegen.c_printer import PRINTER
from autodiff_gen.lowering.c import c_ast as c

ROW, J, FOUR, ONE = c.Name("i"), c.Name("j"), c.number(4), c.number(1)
LOOKED_UP = c.Element(c.Name("label"), c.index((ROW, 1)))

# An index; its steps; the element of x at it, and without what cancels or is nested.
ROWS: dict[str, tuple[c.Index, dict[str, int] | None, str, str]] = {
    "of a matrix": (c.index((ROW, 64), (J, 1), (FOUR, 1)), {"i": 64, "j": 1, "": 4}, "x[i * 64 + j + 4]", ""),
    "backwards": (c.index((c.index((FOUR, 1), (ROW, -1)), 16)), {"i": -16, "": 64}, "x[(4 - i) * 16 + 0]", ""),
    "another row": (c.index((c.index((ROW, 1), (ONE, 1)), 64)), {"i": 64, "": 64}, "x[(i + 1) * 64 + 0]", ""),
    "in a block": (c.index((c.index((ROW, 1), (J, 1)), 1), (ROW, -1)), {"i": 0, "j": 1}, "x[i + j - i]", "x[j]"),
    "of a block": (c.index((J, 8), (c.index((ROW, 1), (c.number(0), 1)), 1)), {"i": 1, "j": 8, "": 0},
                   "x[j * 8 + (i + 0)]", "x[j * 8 + i]"),
    "the first": (c.index(), {}, "x[0]", ""),
    "before": (c.index((ROW, 1), (c.number(-4), 1)), {"i": 1, "": -4}, "x[i + -4]", ""),
    "looked up": (c.index((LOOKED_UP, 16), (J, 1)), None, "x[label[i] * 16 + j]", ""),
    "unsigned": (c.index((c.Literal("3u"), 16), (J, 1)), None, "x[3u * 16 + j]", ""),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
def test_an_index(row: str) -> None:
    index, steps, text, flat = ROWS[row]
    assert index.steps == steps
    texts = [PRINTER.expression(c.Element(c.Name("x"), i)) for i in (index, index.flat)]
    assert texts == [text, flat or text]
