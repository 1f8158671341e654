"""One C expression of a loop nest while its statements are built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from ..ir.node import Value
from ..ir.types import DType, s32
from . import c_ast as c
from .loops import Body


@dataclass(eq=False)
class Expr:
    """A C expression over arguments, built once and placed in the tree wherever it is used."""

    form: Callable[..., c.Expr]  # the tree, given those of the arguments
    home: Body  # the outermost body in which it can be computed
    args: tuple[Expr, ...] = ()
    dtype: DType = s32
    hint: str = ""
    uses: int = 0
    moved: bool = False  # used in a deeper body than its home
    worth_a_name: bool = False
    memory: tuple[Value, tuple[Index, ...]] | None = None  # a load: of what, at which index
    number: int | None = None  # an index that is known
    is_variable: bool = False  # of a loop

    @property
    def is_plain_load(self) -> bool:
        """Whether this is a load whose place the loops around it alone decide: it is a local where a deeper loop would
        read it in every iteration."""
        return self.memory is not None and all(
            i is None or i.is_variable or i.number is not None for i in self.memory[1]
        )

    @property
    def is_local(self) -> bool:
        """Whether it is declared in its home, once all its uses are known."""
        if not self.worth_a_name or not (self.moved or self.uses > 1):
            return False
        return self.memory is None or bool(self.hint) or self.moved


Index: TypeAlias = Expr | None
Accumulators: TypeAlias = list[Expr]  # one for each result
