"""How to read NAME.c: a comment that explains the comments and macros that occur in the file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..lowering.c import c_ast as c
from ..lowering.c import c_query
from .formulas import LET

_KEEPS_NAN = ("{0} != {0}", "{acc0} != {acc0}", "{0} <= 0.0f ? 0.0f")  # in the templates of ops


def _keeps_nan(node: Any) -> bool:
    return isinstance(node, (c.Template, c.StepTemplate)) and any(test in node.text for test in _KEEPS_NAN)


def _holds_registers(node: Any) -> bool:
    """Whether a loop moves by the size of arrays that it declares."""
    sizes = [s.size for s in node.body if isinstance(s, c.Array)] if isinstance(node, c.For) else []
    return bool(sizes) and abs(node.step) > 1 and not node.blocks


def _says(occurs: Callable[[str], bool]) -> Callable[[Any], bool]:
    """A test whether something occurs in the text of a comment."""
    return lambda node: isinstance(node, c.Comment) and occurs(node.text)


def _has_transpose(text: str) -> bool:
    """Whether a text has a ' without a letter after it: `layer's` has none."""
    return any(not after[:1].isalpha() for after in text.split("'")[1:])


_LEGEND: tuple[tuple[Callable[[Any], bool], str], ...] = (
    (
        lambda node: isinstance(node, c.Declare) and node.is_pointer and node.comment.startswith("["),
        "Beside a pointer: its shape, and the steps that use its memory, for it or for values in place of it.",
    ),
    (_says(lambda text: " . " in text), "In comments, a . b is a product of matrices."),
    (_says(_has_transpose), "In comments, x' is the transpose of x."),
    (_says(lambda text: f"\n{LET}" in f"\n{text}"), "In comments, let defines a local value."),
    (
        lambda node: isinstance(node, c.For) and bool(node.blocks),
        "AG_BLOCKS(i, count, j, 8, ...): a loop over i = 0, 8, ... < count and j = 0 to 7; see ag_blocks.h.",
    ),
    (
        _holds_registers,
        "A loop that moves by several elements, as i += 4 does, keeps arrays of so many floats in registers.",
    ),
    (
        _keeps_nan,
        "A maximum, a minimum and ReLU keep a NaN: hence tests as x != x, and x <= 0.0f ? 0.0f : x.",
    ),
)


def legend(steps: Sequence[c.Statements]) -> str:
    """The comment for a file with these steps; empty where they have nothing to explain. Comments of functions repeat
    formulas of their callers, so they say nothing that a step does not say."""
    nodes = list(c_query.nodes(steps))
    said = [told for occurs, told in _LEGEND if any(map(occurs, nodes))]
    return "\n".join(["How to read this file:", *said]) if said else ""
