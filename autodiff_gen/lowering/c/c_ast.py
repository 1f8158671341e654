"""A syntax tree of the C that is generated.

The tree has the meaning of a program, not its layout: only codegen/c_printer.py decides lines, parentheses and
indentation. Queries on the tree are in lowering/c/c_query.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeAlias

from ...ir.names import Called
from ...ir.types import Size
from ..loops.pointed_memory import Access, PointedMemory, Steps

# Expressions


@dataclass(frozen=True)
class Name:
    """A variable, a parameter or a macro."""

    text: str


@dataclass(frozen=True)
class Literal:
    """A number as C spells it."""

    text: str

    @property
    def is_float(self) -> bool:
        return self.text.endswith("f")


@dataclass(frozen=True)
class Member:
    """`pointer->name`."""

    pointer: str
    name: str


@dataclass(frozen=True)
class Element:
    """`array[index]`; with the array `a + b`, `a[b + index]`. `memory`: the memory of the array, where loops need
    it."""

    array: Expr
    index: Expr
    memory: PointedMemory | None = field(default=None, compare=False)

    @property
    def terms(self) -> tuple[tuple[Expr, int], ...]:
        """The terms of the index."""
        return self.index.terms if isinstance(self.index, Index) else ((self.index, 1),)

    @property
    def access(self) -> Access | None:
        """Its place in memory."""
        return None if self.memory is None else self.memory.at(Index(self.terms).steps)

    def at(self, *terms: tuple[Expr, int]) -> Element:
        """An element of the same array."""
        return replace(self, index=index(*terms))

    def __hash__(self) -> int:
        return hash(self.array)  # few elements of a loop are in one array


@dataclass(frozen=True)
class Index:
    """The sum of `terms`, each of them times a number: the place in an array, along the variables of loops."""

    terms: tuple[tuple[Expr, int], ...]

    @property
    def steps(self) -> Steps | None:
        """The step of the index along each variable, and under "" the index where all variables are 0; None if the
        index is not linear in variables."""
        found: dict[str, int] = {}
        for part, factor in self.terms:
            match part:
                case Name(text):
                    moved: Steps | None = {text: 1}
                case Literal(text) if text.removeprefix("-").isdigit():
                    moved = {"": int(text)}
                case Index():
                    moved = part.steps
                case _:
                    moved = None
            if moved is None:
                return None
            for v, k in moved.items():
                found[v] = found.get(v, 0) + k * factor
        return found

    @property
    def flat(self) -> Index:
        """The same index without terms that cancel each other or are 0, and without sums among its terms."""
        terms: list[tuple[Expr, int]] = []
        for part, factor in self.terms:
            is_sum = isinstance(part, Index) and factor == 1 and all(k > 0 for _, k in part.terms)
            for term in part.terms if is_sum and isinstance(part, Index) else ((part, factor),):
                opposite = term[0], -term[1]
                if opposite in terms:
                    terms.remove(opposite)
                elif term[0] != number(0):
                    terms.append(term)
        return index(*terms)

    @property
    def sum(self) -> Expr:
        """The expression of C."""
        parts = [(part.sum if isinstance(part, Index) else part, k) for part, k in self.terms]
        less = [times(p, -k) for p, k in parts if k < 0]
        return total([times(p, k) for p, k in parts if k >= 0] or [number(0)], less)


@dataclass(frozen=True)
class Call:
    """`function(arguments)`. read_only: the positions of pointers through which the function only reads, where that is
    known."""

    function: str
    arguments: tuple[Expr, ...]
    read_only: tuple[int, ...] = ()


@dataclass(frozen=True)
class Unary:
    """`symbol` before the operand."""

    symbol: str
    operand: Expr


@dataclass(frozen=True)
class Initializer:
    """The value of a struct where it is declared: `{.field = value, ...}`."""

    fields: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True)
class Cast:
    c_type: str
    operand: Expr


@dataclass(frozen=True)
class Increment:
    """`name++`."""

    name: str


@dataclass(frozen=True)
class Binary:
    symbol: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Sum:
    """`terms[0] + terms[1] + ... - less[0] - ...`; a long one may take several lines. Subtracted terms are in
    parentheses with the last term: GCC 12.2 deletes loops whose index ends in a constant less a variable,
    `i * 20 + 4 - j` (at -O1 and -O2 on x86-64, in `ivopts`), and compiles `i * 20 + (4 - j)` correctly."""

    terms: tuple[Expr, ...]
    less: tuple[Expr, ...] = ()


@dataclass(frozen=True)
class Conditional:
    test: Expr
    then: Expr
    otherwise: Expr


@dataclass(frozen=True)
class Template:
    """The C template of an op's record: `{0}`, `{1}` are the operands, which must reach the precedence `needs` to be
    written without parentheses; `calls` are the functions that the text itself calls. `high`: the result is the only
    operand, clamped to [0, high]; empty for other ops. `is_float`: whether the result is a float. `signs`: the result
    is the sum of the operands with these signs; `is_product`: it is the product of two; `selects`: it is operand 1
    where operand 0 holds, and operand 2 elsewhere.
    """

    text: str
    operands: tuple[Expr, ...]
    precedence: int
    needs: tuple[int, ...]
    calls: tuple[str, ...]
    high: str = ""
    is_float: bool = True
    signs: tuple[int, ...] = ()
    is_product: bool = False
    selects: bool = False

    @property
    def is_sum(self) -> bool:
        """Whether the result is the sum or the difference of two operands."""
        return len(self.signs) == 2

    @property
    def choice(self) -> tuple[str, str, str] | None:
        """The condition and the two alternatives of a text that chooses one of two expressions."""
        condition, _, rest = self.text.partition(" ? ")
        value, _, other = rest.partition(" : ")
        is_one = other and "?" not in rest and "(" not in condition
        return (condition, value, other) if is_one else None


Expr: TypeAlias = (
    Name
    | Literal
    | Member
    | Element
    | Index
    | Call
    | Unary
    | Initializer
    | Cast
    | Increment
    | Binary
    | Sum
    | Conditional
    | Template
)

# Statements


@dataclass(frozen=True)
class ExprStatement:
    expr: Expr


@dataclass(frozen=True)
class Assign:
    """`target op value;`"""

    target: Expr
    value: Expr
    op: str = "="


@dataclass(frozen=True)
class OfArray:
    """The name of a variable that holds elements of an array: the name of the array, and a word. called: the meaning of
    the array's name."""

    array: Name | Member
    word: str
    called: Called

    @property
    def text(self) -> str:
        return f"{self.array.text if isinstance(self.array, Name) else self.array.name}_{self.word}"


@dataclass(frozen=True)
class Declare:
    """`c_type name = value, name = value;` with a comment after it. `const` variables of a pointer type are constant
    pointers: `float *const x`. called: the meaning of the name of the only variable, where it is more than its text."""

    c_type: str
    variables: tuple[tuple[str, Expr | None], ...]
    const: bool = False
    comment: str = ""
    called: Called | OfArray | None = field(default=None, compare=False)

    @property
    def is_pointer(self) -> bool:
        return self.c_type.endswith("*")


@dataclass(frozen=True)
class Array:
    """`c_type name[size] = {first};`, the other elements 0; not initialised without `first`. called: see Declare."""

    c_type: str
    name: str
    size: int
    first: str = ""
    called: Called | OfArray | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Table:
    """`static const c_type name = {.field = number, ...};`"""

    c_type: str
    name: str
    fields: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class StepTemplate:
    """The statement of a reduction's record: `{acc0}`..., `{x}` and `{i}` are the accumulators, to which it assigns,
    the element and its index; they must reach `need`. `identifier`: how partial results are combined, empty if they
    cannot be."""

    text: str
    accumulators: tuple[Expr, ...]
    x: Expr
    index: Expr | None
    need: int
    calls: tuple[str, ...] = ()
    identifier: str = ""


@dataclass(frozen=True)
class Reduction:
    """The reduction of a loop to the variables `names`, in as many partial results as suits the compiler."""

    identifier: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class BlockOperand:
    """A block of floats that a loop reads, writes or updates, in a local array `name`; `pointer`: where the block is,
    or the first one. `stride`: the floats from the block of a row to the block of the next row. `limit`: stored numbers
    are clamped to [0, limit]. `replaces`: the block reuses the registers of the operand before it, which nothing reads
    once this block is computed."""

    name: str
    pointer: Expr
    is_read: bool
    is_written: bool
    replaces: bool = False
    stride: Expr | None = None
    limit: Expr | None = None


@dataclass(frozen=True)
class For:
    """`variable` from `start`: up to below `stop`, or with a negative step down to `stop` itself; `extent`: the
    difference of the two, where the loop counts upwards. `independent`: no iteration reads or writes an element that
    another one writes (lowering/loops/independent_loops.py), except the variables of `reduction`. `rolled`: compilers
    are not to unroll it. `blocks`: the blocks that are loaded before and stored after the loop over their elements
    (runtime/ag_blocks.h). They belong to that loop, or to the loop around it, which is over blocks or over rows."""

    variable: str
    stop: Expr
    body: tuple[Statement, ...]
    start: Expr = Literal("0")
    step: int = 1
    c_type: str = "int32_t"
    independent: bool = False
    reduction: Reduction | None = None
    rolled: bool = False
    blocks: tuple[BlockOperand, ...] = ()
    extent: Size | None = field(default=None, compare=False)

    @property
    def from_zero(self) -> Size | None:
        """The extent of a loop that starts at 0; None for other loops."""
        return self.extent if self.start == number(0) else None

    @property
    def blocks_macro(self) -> str:
        """The macro of a loop: BLOCKS that follow each other, BLOCK_ROWS, or one BLOCK; empty without blocks."""
        if not self.blocks:
            return ""
        if self.step != 1:
            return "BLOCKS"
        return "BLOCK" if self.blocks[0].stride is None else "BLOCK_ROWS"


@dataclass(frozen=True)
class If:
    test: Expr
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()


@dataclass(frozen=True)
class Block:
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Comment:
    """A comment on separate lines; the comment of a numbered step has the step's number."""

    text: str
    step: str = ""


@dataclass(frozen=True)
class Heading:
    """The heading of the steps after it."""

    text: str


@dataclass(frozen=True)
class Probe:
    """An instrumentation point of a benchmark."""

    id: int


@dataclass(frozen=True)
class Return:
    value: Expr


@dataclass(frozen=True)
class Blank:
    """Between two paragraphs."""


Statement: TypeAlias = (ExprStatement | Assign | Declare | Array | Table | StepTemplate | For | If
                        | Block | Comment | Heading | Probe | Return | Blank)  # fmt: skip
Statements: TypeAlias = tuple[Statement, ...]


@dataclass(frozen=True)
class FunctionParameter:
    c_type: str
    name: str


# Building


@lru_cache(maxsize=1024)
def number(value: int) -> Literal:
    return Literal(str(value))


def index(*terms: tuple[Expr, int]) -> Index:
    """The index that is the sum of such terms."""
    match terms:
        case ((Index() as whole, 1),):
            return whole
    return Index(terms)


def total(terms: Sequence[Expr], less: Sequence[Expr] = ()) -> Expr:
    """The sum of `terms` minus the sum of `less`; 0 without terms. A term with a negative factor is written as a
    subtraction: `a - b * 3` for `a + b * -3`."""
    if not all(map(_negative, terms)):
        less = [*less, *(part for t in terms if (part := _negative(t)))]
        terms = [t for t in terms if not _negative(t)]
    if len(terms) == 1 and not less:
        return terms[0]
    return Sum(tuple(terms) or (number(0),), tuple(less))


def _negative(term: Expr) -> Expr | None:
    """`b * 3` for the term `b * -3`; None for other terms."""
    match term:
        case Binary("*", factor, Literal(text)) if text.startswith("-"):
            return times(factor, -int(text))
    return None


def times(factor: Expr, size: int) -> Expr:
    return factor if size == 1 else Binary("*", factor, number(size))


def plus(pointer: Expr, terms: Sequence[Expr]) -> Expr:
    """A pointer moved by the sum of some terms; if the sum is a single product, it is computed as a ptrdiff_t."""
    if not terms:
        return pointer
    moved = total(terms)
    if isinstance(moved, Binary):
        moved = replace(moved, left=Cast("ptrdiff_t", moved.left))
    return Binary("+", pointer, moved)


def declare(
    c_type: str,
    name: str,
    value: Expr | None = None,
    *,
    const: bool = False,
    called: Called | OfArray | None = None,
) -> Declare:
    return Declare(c_type, ((name, value),), const, called=called)


def braced(statements: Sequence[Statement]) -> Statements:
    """The statements, in braces if they declare something."""
    if any(isinstance(s, Declare | Array | Table) for s in statements):
        return (Block(tuple(statements)),)
    return tuple(statements)


def unbraced(statements: Statements) -> Statements:
    """The content of braces, without the braces of a block that is all of it."""
    while len(statements) == 1 and isinstance(statements[0], Block):
        statements = statements[0].body
    return statements
