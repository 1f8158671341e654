"""How to read NAME.c: once in the file, what its comments and macros mean, as far as they occur in it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..lowering.c import c_ast as c
from .c_printer import PRINTER

_LEGEND = (
    (
        r"\] memory of step",
        "After a pointer: its shape, and the steps that use its memory, for it or for what is in place of it.",
    ),
    (
        r"/\* .* \. ",
        "In comments a . b is a product of matrices, x' a transpose, and let defines a local value.",
    ),
    (
        r"AG_(RELU_)?BLOCK",
        "AG_BLOCKS(i, count, j, 8, ...): a loop over i = 0, 8, ... < count and j = 0 to 7; see ag_blocks.h.",
    ),
    (
        r"for \(int32_t ([i-s]) = .*; \1 \+= [2-9]\d*\)",
        "A loop that moves by several elements, as i += 4 does, keeps arrays of so many floats in registers.",
    ),
    (
        r"([\w\[\]>.*+ -]+) != \1\b|<= 0\.0f \? 0\.0f :",
        "A maximum, a minimum and ReLU keep a NaN: hence tests as x != x, and x <= 0.0f ? 0.0f : x.",
    ),
)


def legend(code: Sequence[str]) -> list[str]:
    """The comment for a file with this code, as lines; none where the code has nothing to explain."""
    text = "\n".join(code)
    said = [told for pattern, told in _LEGEND if re.search(pattern, text)]
    return PRINTER.lines([c.Comment("\n".join(["How to read this file:", *said]))]) if said else []
