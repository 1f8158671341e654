"""The form of statements, equal for statements that differ only in names and in numbers that may become parameters;
and in addition to the form, the variables from outside and the numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from ...ir.names import Called
from ..c import c_ast as c
from ..c import c_query
from .block_moves import COPY, FILL

ROLES = COUNT, STRIDE, OFFSET, FACTOR = "count", "stride", "offset", "factor"  # of numbers
VariableRef: TypeAlias = c.Name | c.Member


@dataclass(frozen=True)
class Variable:
    """A variable from outside that statements use. is_const: whether they only read through the pointer; is_trained:
    whether it is a parameter of the model."""

    name: VariableRef
    c_type: str
    called: Called
    is_const: bool = False
    is_trained: bool = False

    @property
    def is_pointer(self) -> bool:
        return self.c_type.endswith("*")


Known: TypeAlias = Mapping[VariableRef, Variable]  # the variables that statements may use


def declared_by(statement: c.Statement) -> Iterator[Variable]:
    """The variables that a statement declares."""
    match statement:
        case c.Declare(c_type, variables):
            for text, _ in variables:
                of = statement.called
                called = of.called.with_word(of.word) if isinstance(of, c.OfArray) else of
                yield Variable(c.Name(text), c_type, called or Called(text))
        case c.Array(c_type, text):
            yield Variable(c.Name(text), f"{c_type} []", Called(text))


@dataclass(frozen=True)
class Number:
    """A number in statements; role: the name of a parameter for it, empty where C needs the literal."""

    literal: c.Literal
    role: str = ""

    @property
    def c_type(self) -> str:
        return "float" if self.role == FACTOR else "int32_t"


@dataclass(frozen=True)
class Section:
    """Statements of a step that may become a function. caller: the entry and the step; form: equal for statements that
    differ only in names and numbers; outer: variables from outside, in the order in which they are first used; numbers:
    in the order of the nodes of `body`."""

    caller: tuple[str, str]
    body: c.Statements
    form: tuple[Any, ...]
    outer: tuple[Variable, ...]
    numbers: tuple[Number, ...]

    @property
    def size(self) -> int:
        return sum(1 for _ in c_query.nodes(self.body))


def section_of(body: c.Statements, caller: tuple[str, str], known: Known) -> Section | None:
    """Statements that may become a function; None where they assign to a variable from outside, or use a local
    array from outside."""
    form = _Form(body, known)
    if not form.is_closed:
        return None
    outer = tuple(
        replace(v, is_const=v.c_type.startswith("const ") or v.name not in form.written)
        for v in map(known.__getitem__, form.outer)
    )
    fixed = tuple(n.role or n.literal for n in form.numbers)
    plain = tuple(v.c_type.removeprefix("const ") for v in outer)
    return Section(caller, body, (form.tree, fixed, plain), outer, tuple(form.numbers))


def renamed(
    body: c.Statements,
    local: Callable[[str], str],
    outer: Callable[[VariableRef], c.Expr],
    number: Callable[[c.Literal], c.Literal | c.Name],
    loop: Callable[[c.For], c.For],
) -> c.Statements:
    """Statements with new names for their local variables, new expressions for other variables and numbers, and changed
    loops."""
    own = locals_of(body)

    def change(node: Any) -> Any:
        match node:
            case c.Name(text) if text in own:
                return c.Name(local(text))
            case c.Name() | c.Member():
                return outer(node)
            case c.Literal():
                return number(node)
            case c.For(variable):
                return loop(replace(node, variable=local(variable)))
            case c.Declare(variables=pairs):
                return replace(node, variables=tuple((local(name), value) for name, value in pairs))
            case c.Array(name=name) | c.Table(name=name) | c.Increment(name) | c.BlockOperand(name):
                return replace(node, name=local(name))
            case c.Reduction(names=names):
                return replace(node, names=tuple(map(local, names)))
        return node

    return c_query.rewritten(body, change)


def locals_of(body: c.Statements) -> dict[str, Called | c.OfArray | None]:
    """The names that statements declare, with their meaning."""
    found: dict[str, Called | c.OfArray | None] = {}
    for node in c_query.nodes(body):
        match node:
            case c.For(variable):
                found[variable] = None
            case c.Declare(variables=pairs):
                found |= dict.fromkeys((name for name, _ in pairs), node.called)
            case c.Array(name=name):
                found[name] = node.called
            case c.Table(name=name):
                found[name] = None
            case c.BlockOperand(name, pointer):
                array = next(x for x in c_query.nodes(pointer) if isinstance(x, c.Name | c.Member))
                found[name] = c.OfArray(array, "block", Called(name))
    return found


@dataclass
class _Form:
    """Reads statements as their form. tree: the statements with other names; outer: variables from outside in order;
    written: the pointers whose memory may be written; is_closed: see section_of."""

    body: c.Statements
    known: Known
    numbers: list[Number] = field(default_factory=list)
    outer: dict[VariableRef, c.Name] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.locals: dict[str, str] = {}
        arrays = (c.Array, c.Table, c.BlockOperand)
        self.arrays = {node.name for node in c_query.nodes(self.body) if isinstance(node, arrays)}
        self.tree = renamed(self.body, self._local, self._outer, self._number, self._loop)
        self._set_roles()
        self.written = set(_written(self.body))
        self.is_closed = not any(map(self._is_open, c_query.nodes(self.body)))

    def _local(self, name: str) -> str:
        return self.locals.setdefault(name, f"local {len(self.locals)}")

    def _outer(self, place: VariableRef) -> c.Expr:
        if place not in self.known:
            return place
        return self.outer.setdefault(place, c.Name(f"outer {len(self.outer)}"))

    def _number(self, literal: c.Literal) -> c.Literal:
        role = STRIDE if literal.text.isdecimal() else ""
        if literal.is_float and literal.text[0].isdecimal():
            role = FACTOR
        self.numbers.append(Number(literal, role))
        return c.Literal(str(len(self.numbers) - 1))

    def _loop(self, loop: c.For) -> c.For:
        """The limits of a loop are counts, unless they have to be known: where it is over the elements of a local
        array, which is in registers, or over blocks."""
        arrays = {self.locals.get(name, "") for name in self.arrays}
        role = "" if _is_of_arrays(loop, arrays) else COUNT
        self._set_count(loop.stop, role)
        self._set_count(loop.start, "" if loop.blocks else role)
        return loop

    def _set_count(self, count: c.Expr, role: str = COUNT) -> None:
        match count:
            case c.Literal(position):
                self._set_role(position, role)
            case c.Binary("*", c.Literal(position), _):
                self._set_role(position, COUNT)

    def _set_roles(self) -> None:
        """Numbers that are added to an index are offsets; how many elements are copied is a count."""
        for node in c_query.nodes(self.tree):
            match node:
                case c.Call(function, arguments) if function in (COPY, FILL):
                    self._set_count(arguments[-1])
                case c.Sum(terms, less):
                    self._set_offsets((*terms, *less))
                case c.Element(index=index):
                    self._set_offsets((index,))

    def _set_offsets(self, terms: Iterable[c.Expr]) -> None:
        for term in terms:
            if isinstance(term, c.Literal) and self.numbers[int(term.text)].role == STRIDE:
                self._set_role(term.text, OFFSET)

    def _set_role(self, position: str, role: str) -> None:
        self.numbers[int(position)] = replace(self.numbers[int(position)], role=role)

    def _is_open(self, node: Any) -> bool:
        """Whether a node assigns to a variable from outside, or uses a variable that cannot be a parameter."""
        match node:
            case c.Name(text) if text in self.locals:
                return node in self.known
            case c.Name():
                return node in self.known and self.known[node].c_type.endswith("[]")
            case c.Member():
                return node not in self.known
            case c.Increment(name):
                return name not in self.locals
            case c.Assign(target=c.Name(name)):
                return name not in self.locals
            case c.StepTemplate(accumulators=accumulators):
                return any(isinstance(a, c.Name) and a.text not in self.locals for a in accumulators)
        return False


def _is_of_arrays(loop: c.For, arrays: set[str]) -> bool:
    """Whether a loop is over the elements of local arrays from outside of it, which are in registers where their
    indices are known."""
    arrays = arrays - {s.name for s in c_query.statements(loop.body) if isinstance(s, c.Array)}
    return any(
        isinstance(node, c.Element)
        and isinstance(node.array, c.Name)
        and node.array.text in arrays
        and loop.variable in c_query.names(node.index)
        for node in c_query.nodes(loop.body)
    )


def _written(body: c.Statements) -> Iterator[Any]:
    """Nodes in the pointers to memory that statements may write."""
    for node in c_query.nodes(body):
        match node:
            case c.Assign(target=c.Element(array)):
                yield from c_query.nodes(array)
            case c.StepTemplate(accumulators=accumulators):
                yield from c_query.nodes([a.array for a in accumulators if isinstance(a, c.Element)])
            case c.Declare(c_type, variables) if node.is_pointer and not c_type.startswith("const "):
                yield from c_query.nodes(variables)
            case c.BlockOperand(pointer=pointer, is_written=True):
                yield from c_query.nodes(pointer)
            case c.Call(_, arguments):
                passed = (a for k, a in enumerate(arguments) if k not in node.read_only)
                yield from c_query.nodes([a for a in passed if not isinstance(a, c.Element)])
