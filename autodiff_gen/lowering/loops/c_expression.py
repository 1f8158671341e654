"""One C expression of a loop nest while its statements are built."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from ...ir.node import Value
from ...ir.types import DType, f32, s32
from ...passes.loops.nesting import Body
from ..c import c_ast as c
from .pointed_memory import local_array


@dataclass(eq=False)
class LoopExpr:
    """A C expression over arguments, built once and placed in the tree wherever it is used."""

    form: Callable[..., c.Expr]  # the tree, given the trees of the arguments
    home: Body  # the outermost body in which it can be computed
    args: tuple[LoopExpr, ...] = ()
    dtype: DType = s32
    hint: str | Value = ""  # the name as a local: a word, or the value that it is
    uses: int = 0
    moved: bool = False  # used in a deeper body than its home
    worth_a_name: bool = False
    memory: tuple[Value, tuple[Index, ...]] | None = None  # of a load: the value and the index
    number: int | None = None  # an index that is known
    is_variable: bool = False  # of a loop

    @property
    def is_plain_load(self) -> bool:
        """Whether this is a load whose index has only known numbers and variables of loops: it is a local where a
        deeper loop would read it in every iteration."""
        return self.memory is not None and all(
            i is None or i.is_variable or i.number is not None for i in self.memory[1]
        )

    @property
    def is_local(self) -> bool:
        """Whether the expression is declared as a local in its home; final when all its uses are known."""
        if not self.worth_a_name or not (self.moved or self.uses > 1):
            return False
        return self.memory is None or self.hint != "" or self.moved


def unnamed() -> c.Expr:
    raise AssertionError("a load or an accumulator has no form")


Index: TypeAlias = LoopExpr | None


def home_of(args: Iterable[Index], top: Body) -> Body:
    """The outermost body in which an expression of these arguments can be computed, in a nest with this top."""
    home = top
    for arg in args:
        if arg is not None and arg.home.depth > home.depth:
            home = arg.home
    return home


def element_of(array: LoopExpr, home: Body, *terms: tuple[LoopExpr, int], uses: int = 0) -> LoopExpr:
    """The element of a local array at an index: the sum of expressions, each of them times a number."""

    def form(name: c.Expr, *places: c.Expr) -> c.Expr:
        assert isinstance(name, c.Name)
        index = c.index(*((place, k) for place, (_, k) in zip(places, terms, strict=True)))
        return c.Element(name, index, local_array(name.text, is_float=array.dtype is f32))

    return LoopExpr(form, home, (array, *(i for i, _ in terms)), array.dtype, array.hint, uses)


Accumulators: TypeAlias = list[LoopExpr]  # one for each result


@dataclass(eq=False)
class RowArrays:
    """The local arrays of a tile of rows. at: the variable of the loop that fills them; first: the variable of the loop
    over tiles, None if there is one tile; elements: each array, and its element at `at`."""

    at: LoopExpr
    first: LoopExpr | None
    elements: dict[LoopExpr, LoopExpr] = field(default_factory=dict)

    def filled(self, element: LoopExpr) -> LoopExpr:
        """A new array of such elements."""
        array = LoopExpr(unnamed, self.at.home, dtype=element.dtype)
        self.elements[array] = element
        return array

    def element(self, array: LoopExpr, at: LoopExpr) -> LoopExpr:
        """The element of an array at a variable of a loop over the tile's columns."""
        first = () if self.first is None else ((self.first, -1),)
        return element_of(array, at.home, (at, 1), *first)
