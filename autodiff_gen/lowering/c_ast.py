"""A syntax tree of the C that is generated.

It says what a program does, never how it is laid out: codegen/c_printer.py alone decides lines, parentheses and
indentation. What else must be known of the C (functions that are called, lengths of loops, declarations) is read from
the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from typing import Any, TypeAlias, TypeVar

# Expressions


@dataclass(frozen=True)
class Name:
    """A variable, a parameter or a macro."""

    text: str


@dataclass(frozen=True)
class Literal:
    """A number as C spells it."""

    text: str


@dataclass(frozen=True)
class Member:
    """`pointer->name`."""

    pointer: str
    name: str


@dataclass(frozen=True)
class Element:
    """`array[index]`; with the array `a + b`, `a[b + index]`."""

    array: Expr
    index: Expr


@dataclass(frozen=True)
class Call:
    function: str
    arguments: tuple[Expr, ...]


@dataclass(frozen=True)
class Unary:
    """`symbol` before the operand."""

    symbol: str
    operand: Expr


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
    """`terms[0] + terms[1] + ... - less[0] - ...`; a long one stands on several lines."""

    terms: tuple[Expr, ...]
    less: tuple[Expr, ...] = ()


@dataclass(frozen=True)
class Conditional:
    test: Expr
    then: Expr
    otherwise: Expr


@dataclass(frozen=True)
class Template:
    """The C template of an op's record: `{0}`, `{1}` stand for the operands, which must reach the precedence `needs` to
    stand without parentheses; `calls` are the functions that the text itself calls.
    """

    text: str
    operands: tuple[Expr, ...]
    precedence: int
    needs: tuple[int, ...]
    calls: tuple[str, ...]


Expr: TypeAlias = (
    Name
    | Literal
    | Member
    | Element
    | Call
    | Unary
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
class Declare:
    """`c_type name = value, name = value;` with a comment behind it. `const` variables of a pointer type are constant
    pointers: `float *const x`."""

    c_type: str
    variables: tuple[tuple[str, Expr | None], ...]
    const: bool = False
    comment: str = ""

    @property
    def is_pointer(self) -> bool:
        return self.c_type.endswith("*")


@dataclass(frozen=True)
class Table:
    """`static const c_type name = {.field = number, ...};`"""

    c_type: str
    name: str
    fields: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class StepTemplate:
    """The statement of a reduction's record: `{acc0}`, `{x}`, `{i}` stand for operands, which must reach `need`."""

    text: str
    operands: tuple[tuple[str, Expr], ...]
    need: int
    calls: tuple[str, ...] = ()


@dataclass(frozen=True)
class For:
    """`variable` from `start`: up to below `stop`, or with a step of -1 down to `stop` itself."""

    variable: str
    stop: Expr
    body: tuple[Statement, ...]
    start: Expr = Literal("0")
    step: int = 1
    c_type: str = "int32_t"


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
    """A comment of its own; that of a numbered step has the step's number."""

    text: str
    step: str = ""


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


Statement: TypeAlias = (
    ExprStatement
    | Assign
    | Declare
    | Table
    | StepTemplate
    | For
    | If
    | Block
    | Comment
    | Probe
    | Return
    | Blank
)
Statements: TypeAlias = tuple[Statement, ...]
T = TypeVar("T")

# Building


def number(value: int) -> Literal:
    return Literal(str(value))


def total(terms: Sequence[Expr], less: Sequence[Expr] = ()) -> Expr:
    """The sum of `terms` less `less`; 0 without terms."""
    if len(terms) == 1 and not less:
        return terms[0]
    return Sum(tuple(terms) or (number(0),), tuple(less))


def times(factor: Expr, size: int) -> Expr:
    return factor if size == 1 else Binary("*", factor, number(size))


def plus(pointer: Expr, terms: Sequence[Expr]) -> Expr:
    """A pointer moved by the sum of some terms; a lone product is computed as wide as a pointer."""
    if not terms:
        return pointer
    moved = total(terms)
    if isinstance(moved, Binary):
        moved = replace(moved, left=Cast("ptrdiff_t", moved.left))
    return Binary("+", pointer, moved)


def declare(c_type: str, name: str, value: Expr | None = None, *, const: bool = False) -> Declare:
    return Declare(c_type, ((name, value),), const)


def braced(statements: Sequence[Statement]) -> Statements:
    """In braces of their own where they declare something."""
    if any(isinstance(s, Declare | Table) for s in statements):
        return (Block(tuple(statements)),)
    return tuple(statements)


@cache
def functions_of(template: str) -> tuple[str, ...]:
    """The functions that an op's C template calls: the names before its parentheses."""
    found = []
    for text in template.split("(")[:-1]:
        size = next((k for k, c in enumerate(reversed(text)) if not (c.isalnum() or c == "_")), len(text))
        found.append(text[len(text) - size :])
    return tuple(dict.fromkeys(name for name in found if name and name != "if"))


# Reading


def walk(tree: Any) -> Iterator[Any]:
    """Every node of a tree or of a sequence of trees, parents first."""
    if isinstance(tree, tuple | list):
        for part in tree:
            yield from walk(part)
    elif is_dataclass(tree):
        yield tree
        for f in fields(tree):
            yield from walk(getattr(tree, f.name))


def calls(tree: Any) -> set[str]:
    """The functions that a tree calls."""
    out: set[str] = set()
    for node in walk(tree):
        if isinstance(node, Call):
            out.add(node.function)
        elif isinstance(node, Template | StepTemplate):
            out.update(node.calls)
    return out


def types(tree: Any) -> set[str]:
    """The types of a tree's tables."""
    return {node.c_type for node in walk(tree) if isinstance(node, Table)}


def words(expr: Expr) -> list[str]:
    """The names in an expression, in order."""
    found = []
    for node in walk(expr):
        if isinstance(node, Name | Literal):
            found.append(node.text)
        elif isinstance(node, Member):
            found.append(node.name)
        elif isinstance(node, Cast):
            found.append(node.c_type.rstrip(" *"))
    return found


# Rewriting


def rewritten(tree: T, change: Callable[[Any], Any]) -> T:
    """A tree whose nodes are what `change` makes of them, children first. A statement may become several, or none, as a
    tuple."""
    if isinstance(tree, tuple | list):
        out: list[Any] = []
        for part in tree:
            made = rewritten(part, change)
            spread = isinstance(made, tuple) and not isinstance(part, tuple)
            out += made if spread else [made]
        return tuple(out)  # type: ignore[return-value]
    if not is_dataclass(tree):
        return tree
    old = {f.name: getattr(tree, f.name) for f in fields(tree)}
    new = {k: rewritten(v, change) for k, v in old.items()}
    changed = {k: v for k, v in new.items() if v is not old[k] and v != old[k]}
    return change(replace(tree, **changed) if changed else tree)  # type: ignore[type-var, no-any-return]


def with_functions(tree: T, names: Mapping[str, str]) -> T:
    """The tree with calls of `names` replaced."""

    def change(node: Any) -> Any:
        if isinstance(node, Call) and node.function in names:
            return replace(node, function=names[node.function])
        if isinstance(node, Template | StepTemplate) and names.keys() & set(node.calls):
            text = node.text
            for old in node.calls:
                text = text.replace(f"{old}(", f"{names.get(old, old)}(")
            return replace(node, text=text, calls=tuple(names.get(f, f) for f in node.calls))
        return node

    return rewritten(tree, change) if names else tree


def with_probes(tree: Iterable[Statement], ids: Mapping[str, int]) -> Statements:
    """A probe behind the comment of every step that has an id."""

    def change(node: Any) -> Any:
        if isinstance(node, Comment) and node.step in ids:
            return node, Probe(ids[node.step])
        return node

    return rewritten(tuple(tree), change) if ids else tuple(tree)


def before_returns(tree: Iterable[Statement], statement: Statement) -> Statements:
    """The tree with a statement before every return."""
    return rewritten(tuple(tree), lambda node: (statement, node) if isinstance(node, Return) else node)


def step_comments(tree: Any) -> dict[str, str]:
    """What every step computes, by its number."""
    return {n.step: n.text for n in walk(tree) if isinstance(n, Comment) and n.step}
