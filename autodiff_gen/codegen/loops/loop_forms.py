"""The form of loops, which loops that differ in names and numbers only have in common, and what it leaves out: the
variables from outside and the numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Any, TypeAlias

from ...lowering.c import c_ast as c
from ...lowering.c import c_query
from ...lowering.loops.block_moves import COPY, FILL

Variable: TypeAlias = c.Name | c.Member

ROLES = COUNT, STRIDE, OFFSET, FACTOR = "count", "stride", "offset", "factor"  # of numbers


@dataclass(frozen=True)
class Known:
    """The types of the variables that the loops of an entry may use."""

    types: dict[Variable, str]

    def copy(self) -> Known:
        return Known(dict(self.types))

    def declare(self, statement: c.Statement) -> None:
        match statement:
            case c.Declare(c_type, variables):
                self.types.update({c.Name(name): c_type for name, _ in variables})
            case c.Array(c_type, name):
                self.types[c.Name(name)] = f"{c_type} []"


@dataclass(frozen=True)
class Outer:
    """A variable from outside that loops use; of a pointer, whether it is only read."""

    name: Variable
    c_type: str
    is_const: bool


@dataclass(frozen=True)
class Number:
    """A number in loops; role: what a parameter for it is named after, empty where C needs it as it is."""

    literal: c.Literal
    role: str = ""

    @property
    def c_type(self) -> str:
        return "float" if self.role == FACTOR else "int32_t"


@dataclass(frozen=True)
class Loops:
    """Loops of a step. caller: the entry and the step; form: what loops that differ in names and numbers only have in
    common; outer: variables from outside, in the order in which they are first used; numbers: in the order of the nodes
    of `body`."""

    caller: tuple[str, str]
    body: c.Statements
    form: tuple[Any, ...]
    outer: tuple[Outer, ...]
    numbers: tuple[Number, ...]


def _role(literal: c.Literal) -> str:
    """The role of a number that is no limit of a loop."""
    if literal.text.isdecimal():
        return STRIDE
    return FACTOR if literal.is_float and literal.text[0].isdecimal() else ""


def loops_of(body: c.Statements, caller: tuple[str, str], known: Known) -> Loops | None:
    """Loops that may become a function; None where they assign to a variable from outside, or use a local array of
    it."""
    form = _Form(known)
    form.read(body)
    if not form.is_closed:
        return None
    outer = tuple(Outer(v, t, t.startswith("const ") or v not in form.written) for v, t in form.outer_types())
    plain = tuple(v.c_type.removeprefix("const ") for v in outer)
    return Loops(caller, body, (tuple(form.tokens), plain), outer, tuple(form.numbers))


@cache
def _fields(kind: Any) -> tuple[str, ...] | None:
    """The names of the fields of a kind of node; None for what is no node."""
    return tuple(f.name for f in fields(kind) if f.compare) if is_dataclass(kind) else None


_PLAIN = {c.Unary, c.Cast, c.Binary, c.Conditional, c.Template}  # that only read


@dataclass
class _Form:
    """Reads loops as their form."""

    known: Known
    tokens: list[Any] = field(default_factory=list)
    local: dict[str, int] = field(default_factory=dict)
    outer: dict[Variable, int] = field(default_factory=dict)
    written: set[Variable] = field(default_factory=set)
    arrays: set[str] = field(default_factory=set)  # local ones
    numbers: list[Number] = field(default_factory=list)
    is_closed: bool = True  # whether the loops assign to no variable from outside and use no array from there

    def outer_types(self) -> Iterator[tuple[Variable, str]]:
        return ((v, self.known.types[v]) for v in self.outer)

    def read(self, node: Any) -> None:
        kind: Any = type(node)
        if kind is tuple or kind is list:
            self.tokens.append(len(node))
            for part in node:
                self.read(part)
        elif kind is c.Name or kind is c.Member:
            self._use(node)
        elif kind is c.Literal:
            self._read_number(node, _role(node))
        elif kind is c.Sum:
            self.tokens += [kind, len(node.terms), len(node.less)]
            for term in (*node.terms, *node.less):
                self._read_added(term)
        elif kind is c.Element:
            self.tokens.append(kind)
            self.read(node.array)
            self._read_added(node.index)
        elif _fields(kind) is None:
            self.tokens.append(node)
        else:
            self.tokens.append(kind)
            if kind in _PLAIN:
                self._read_plain(node, kind)
            else:
                self._read_fields(node)

    def _read_added(self, term: Any) -> None:
        """An index, or a term of one."""
        if isinstance(term, c.Literal) and _role(term) == STRIDE:
            self._read_number(term, OFFSET)
        else:
            self.read(term)

    def _read_plain(self, node: Any, kind: Any) -> None:
        parts = c_query.node_fields(kind) or ()
        for name in _fields(kind) or ():
            value = getattr(node, name)
            if name in parts:
                self.read(value)
            elif type(value) is tuple:
                self.tokens += [len(value), *value]
            else:
                self.tokens.append(value)

    def _read_fields(self, node: Any) -> None:
        match node:
            case c.For(variable, stop, body, start):
                for operand in node.blocks:
                    self._define(operand.name)
                    self.arrays.add(operand.name)
                self._define(variable)
                role = "" if self._is_of_local_arrays(variable, body) else COUNT
                for limit in (stop, start):
                    if isinstance(limit, c.Literal):  # a loop over blocks begins at 0
                        self._read_number(limit, "" if node.blocks and limit is start else role)
                    else:
                        self._read_limit(limit)
                    if limit is stop:
                        self.read(body)
                self.tokens += [node.step, node.c_type, node.independent, node.rolled]
                self.read(node.reduction)
                self.read(node.blocks)
                return
            case c.Declare(variables=variables):
                for name, value in variables:
                    self.read(value)
                    self._define(name)
                self._mark(node.variables if node.is_pointer and not node.c_type.startswith("const ") else ())
                self.tokens += [node.c_type, node.const]
                return
            case c.Array() | c.Table():
                self._define(node.name)
                self.arrays.add(node.name)
            case c.Increment(name):
                self._use(c.Name(name))
                self.is_closed &= name in self.local
                return
            case c.Reduction():
                for name in node.names:
                    self._use(c.Name(name))
                self.tokens.append(node.identifier)
                return
            case c.Assign():
                self._assign(node.target)
            case c.StepTemplate():
                for accumulator in node.accumulators:
                    self._assign(accumulator)
            case c.BlockOperand(pointer=pointer, is_written=True):
                self._mark((pointer,))
            case c.Call():
                passed = [a for k, a in enumerate(node.arguments) if k not in node.read_only]
                self._mark(a for a in passed if not isinstance(a, c.Element))
                if node.function in (COPY, FILL):
                    *others, size = node.arguments
                    self.tokens.append(node.function)
                    self.read(others)
                    self._read_limit(size)
                    return
        kind: Any = type(node)
        for name in _fields(kind) or ():
            if name != "name" or not isinstance(node, (c.Array, c.Table, c.BlockOperand)):
                self.read(getattr(node, name))

    def _read_limit(self, limit: Any) -> None:
        """A limit of a loop, or how many elements are copied: a number, a variable, or a multiple of one, whose factor
        is a number of elements."""
        match limit:
            case c.Literal():
                self._read_number(limit, COUNT)
            case c.Binary("*", c.Literal() as factor, number):
                self.tokens += [c.Binary, limit.symbol]
                self._read_number(factor, COUNT)
                self.read(number)
            case _:
                self.read(limit)

    def _read_number(self, literal: c.Literal, role: str = "") -> None:
        self.tokens.append(role or literal)
        self.numbers.append(Number(literal, role))

    def _is_of_local_arrays(self, variable: str, body: c.Statements) -> bool:
        """Whether a loop is over the elements of local arrays, which are in registers where their indices are known."""
        if not self.arrays:
            return False
        arrays = self.arrays - {s.name for s in c_query.statements(body) if isinstance(s, c.Array)}
        elements = (node for node in c_query.nodes(body) if isinstance(node, c.Element))
        used = (e.index for e in elements if isinstance(e.array, c.Name) and e.array.text in arrays)
        return bool(arrays) and any(variable in c_query.names(index) for index in used)

    def _define(self, name: str) -> None:
        self.is_closed &= c.Name(name) not in self.outer
        self.tokens.append(self.local.setdefault(name, -1 - len(self.local)))

    def _use(self, variable: Variable) -> None:
        if isinstance(variable, c.Name) and variable.text in self.local:
            self.tokens.append(self.local[variable.text])
        elif (c_type := self.known.types.get(variable)) is not None:
            self.is_closed &= not c_type.endswith("[]")  # a parameter is a pointer: its sizeof is another one
            self.tokens.append(self.outer.setdefault(variable, len(self.outer)))
        else:
            self.is_closed &= isinstance(variable, c.Name)
            self.tokens.append(variable)

    def _assign(self, target: c.Expr) -> None:
        if isinstance(target, c.Element):
            self._mark((target.array,))
        elif isinstance(target, c.Name):
            self.is_closed &= target.text in self.local

    def _mark(self, trees: Iterable[Any]) -> None:
        """What the pointers in these trees point to may be written."""
        self.written |= {v for v in c_query.nodes(tuple(trees)) if isinstance(v, (c.Name, c.Member))}
