"""Forms: the ways in which an op computes the results of another op. The record of the op names the other op; passes
look an op up by the other op and the form (`in_form` in node.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .op_kinds import Attrs


@dataclass(frozen=True)
class Form:
    """The op has the results of the op `of`; each subclass says how it computes them."""

    of: str


@dataclass(frozen=True)
class AddedToMemory(Form):
    """Added to memory: y = (+ or -) alpha term + beta old, where `of` computes the term; without `of` it is operand 0.
    The last two operands are the old value, whose memory the result reuses, and alpha; `beta` and `negate` are
    attributes."""


@dataclass(frozen=True)
class WithEpilogue(Form):
    """Followed by an epilogue (ops/products/epilogue.py), whose operands follow the operands of `of`."""


@dataclass(frozen=True)
class WithLayout(Form):
    """Stored with a layout, an attribute."""


@dataclass(frozen=True)
class ByRows(Form):
    """Completed by rows in a fused loop. made: (operands, attributes) of `of` -> the same value by rows, None where
    there is none. in_one_call: (operands, attributes) of the op by rows -> the same matrix, computed by `of`."""

    made: Callable[[Sequence[Any], Attrs], Any]
    in_one_call: Callable[[Sequence[Any], Attrs], Any]


@dataclass(frozen=True)
class FirstResultOnly(Form):
    """The first result only, for when nothing reads the others."""


@dataclass(frozen=True)
class TwoOpsInOne(Form):
    """Two ops in one call: operand `operand` of `of` is the first result of op `inner`. The op has the operands of
    `of`, with the operands of `inner` in place of that one. If it is `biased`, its last operand is a number for each
    channel, added to the result of `inner`. joined: (attributes of inner, of `of`) -> the op's attributes, or None
    where the two have no kernel in common."""

    inner: str
    operand: int
    joined: Callable[[Attrs, Attrs], dict[str, Any] | None]
    biased: bool = False
