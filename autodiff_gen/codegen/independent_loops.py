"""Which loops of generated C have independent iterations: none reads or writes what another one writes.

A compiler sees pointers into one arena, and checks at run time whether they overlap, or gives up where they are many.
The plan knows: two arrays are apart, or an element is replaced by the iteration that alone reads it. This is read from
the tree: where the pointers are declared to point to, and the indices of the elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from ..lowering import c_ast as c
from ..lowering import c_query
from .reduction_loops import reduction
from .vector_loops import iterations

CALLER = (
    "caller"  # the root of arrays whose place only the caller knows; none is part of the program's own memory
)
LOCAL = "local "  # and a name: the root of a local array
UNKNOWN = ""  # the root of a pointer to anything
SIZES = {"uint8_t": 1, "int8_t": 1}  # bytes of an element; 4 of all others

Linear: TypeAlias = Mapping[str, int]  # what is added up: variables times numbers, and under "" a number


@dataclass(frozen=True)
class Memory:
    """What a pointer points to. root: an arena, a state, a local array, CALLER or UNKNOWN; first, end: the bytes of the
    root that its elements are in, None if unknown; origin: its first element, in bytes from the beginning of `anchor`,
    the root or a pointer that moves."""

    root: str
    anchor: str
    origin: int
    element: int
    first: int | None = None
    end: int | None = None

    def is_apart_from(self, other: Memory) -> bool:
        if UNKNOWN in (self.root, other.root):
            return False
        if self.root != other.root:
            return True
        ends = (self.first, self.end, other.first, other.end)
        if any(end is None for end in ends):
            return False
        first, end, other_first, other_end = (e for e in ends if e is not None)
        return end <= other_first or other_end <= first


@dataclass(frozen=True)
class Access:
    """An element that a loop reads or writes; its place in bytes, None where that is not linear in variables."""

    memory: Memory
    place: Linear | None
    is_written: bool


Pointers: TypeAlias = dict[str, Memory]


def with_independent_loops(
    steps: Sequence[c.Statements], batch: int, shortest: int, reorder: bool = False
) -> tuple[c.Statements, ...]:
    """The steps of an entry, in which innermost loops of at least `shortest` iterations over several arrays say that
    these are independent, where they are, and with `reorder` what they reduce rows to; unchanged if `shortest` is 0.
    batch: the most that `n` can be; reorder: whether sums may be reordered."""
    marks = _Marks(batch, shortest, reorder)
    pointers: Pointers = {}  # those of a step are used in later ones too
    return tuple(marks.sequence(step, pointers) if shortest else step for step in steps)


@dataclass(frozen=True)
class _Marks:
    batch: int
    shortest: int
    reorder: bool

    def sequence(self, tree: c.Statements, pointers: Pointers) -> c.Statements:
        out: list[c.Statement] = []
        for statement in tree:
            match statement:
                case c.Declare(variables=((name, value),)) if statement.is_pointer and value is not None:
                    pointers[name] = _declared(statement, name, value, pointers)
                case c.Array(c_type, name):
                    pointers[name] = Memory(f"{LOCAL}{name}", name, 0, SIZES.get(c_type, 4))
                case c.For(body=body):
                    marked = self._marked(statement, pointers)
                    statement = replace(marked, body=self.sequence(body, dict(pointers)))
                case c.If(test, then, otherwise):
                    inside = (self.sequence(part, dict(pointers)) for part in (then, otherwise))
                    statement = c.If(test, *inside)
                case c.Block(body):
                    statement = c.Block(self.sequence(body, dict(pointers)))
            out.append(statement)
        return tuple(out)

    def _marked(self, loop: c.For, pointers: Pointers) -> c.For:
        count = iterations(loop, self.batch, 1 << 31)
        innermost = not any(isinstance(node, c.For) for node in c_query.nodes(loop.body))
        accesses = _all_accesses(loop, pointers) if innermost and count >= self.shortest else None
        if accesses is None or not _are_independent(accesses, loop.variable, count):
            return loop
        arrays = {a.memory for a in accesses if not a.memory.root.startswith(LOCAL)}
        rows = self.reorder and all(_is_in_row(a, loop.variable) for a in accesses)
        # what is done with one array, compilers see for themselves
        return replace(loop, independent=len(arrays) > 1, reduction=reduction(loop) if rows else None)


def _declared(pointer: c.Declare, name: str, value: c.Expr, pointers: Pointers) -> Memory:
    """What a declared pointer points to."""
    element = SIZES.get(pointer.c_type.removeprefix("const ").rstrip(" *"), 4)
    if isinstance(value, c.Cast):
        value = value.operand
    source = _memory(value, pointers)
    if source is None:
        return Memory(UNKNOWN, name, 0, element)
    memory, offset = source
    if any(offset.get(v) for v in offset if v):  # it moves
        return replace(memory, anchor=name, origin=0, element=element)
    origin = memory.origin + offset.get("", 0)
    if pointer.bytes:
        return Memory(memory.root, memory.anchor, origin, element, origin, origin + pointer.bytes)
    return replace(memory, origin=origin, element=element)


def _memory(array: c.Expr, pointers: Pointers) -> tuple[Memory, Linear] | None:
    """What an array is part of, and the bytes from there to its first element."""
    match array:
        case c.Binary("+", start, moved):
            source, steps = _memory(start, pointers), linear(moved)
            if source is None or steps is None:
                return None
            memory, offset = source
            return memory, _sum(offset, _scaled(steps, memory.element))
        case c.Member(pointer, name):
            return Memory(f"{pointer}->{name}", f"{pointer}->{name}", 0, 4), {}
        case c.Name(name):
            return pointers.get(name, Memory(CALLER, name, 0, 4)), {}
    return None


def _all_accesses(loop: c.For, pointers: Pointers) -> list[Access] | None:
    """Those of an innermost loop; None where they are not known."""
    accesses: list[Access] = []
    for statement in loop.body:
        found = _accesses(statement, pointers)
        if found is None:
            return None
        accesses += found
    return accesses


def _are_independent(accesses: Sequence[Access], variable: str, count: int) -> bool:
    writes = [a for a in accesses if a.is_written]
    return all(_never_meet(w, a, variable, count) for w in writes for a in accesses)


def _is_in_row(access: Access, variable: str) -> bool:
    """Whether an access is to the same element in all iterations, or to the next one in each."""
    return access.place is not None and access.place.get(variable, 0) in (0, access.memory.element)


def _accesses(statement: c.Statement, pointers: Pointers) -> list[Access] | None:
    """What a statement reads and writes, parts of it included; None where that is not known."""
    out: list[Access] = []
    for node in c_query.nodes(statement):
        match node:
            case c.Element(array, index):
                found = _memory(array, pointers)
                if found is None:
                    return None
                memory, offset = found
                steps = linear(index)
                place = None if steps is None else _sum(offset, _scaled(steps, memory.element))
                out.append(Access(memory, place, any(node is target for target in _targets(statement))))
            case c.Array() | c.ExprStatement() | c.Return() | c.Probe():
                return None
            case c.Declare() if node.is_pointer:
                return None
    return out


def _targets(statement: c.Statement) -> Iterator[c.Expr]:
    """The expressions that are assigned to."""
    for node in c_query.nodes(statement):
        if isinstance(node, c.Assign):
            yield node.target
        elif isinstance(node, c.StepTemplate):
            yield from (value for key, value in node.operands if key.startswith("acc"))


def _never_meet(write: Access, other: Access, variable: str, count: int) -> bool:
    """Whether different iterations of the loop over `variable` never touch the same byte."""
    if write.place is None or other.place is None or write.memory.anchor != other.memory.anchor:
        return write.memory.is_apart_from(other.memory)
    a = _sum(write.place, {"": write.memory.origin})
    b = _sum(other.place, {"": other.memory.origin})
    size = write.memory.element
    step = abs(a.get(variable, 0))
    same = all(a.get(v, 0) == b.get(v, 0) for v in {*a, *b} if v)
    if not same or step < size or size != other.memory.element:
        return write.memory is not other.memory and write.memory.is_apart_from(other.memory)
    distance = abs(a.get("", 0) - b.get("", 0))
    return distance == 0 or distance >= step * count or distance % step >= size


# Linear expressions


def linear(expr: c.Expr) -> Linear | None:
    """An index as variables times numbers; None where it is anything else."""
    match expr:
        case c.Literal(text):
            return {"": int(text)} if text.isdigit() else None
        case c.Name(name):
            return {name: 1}
        case c.Cast("ptrdiff_t", operand):
            return linear(operand)
        case c.Binary("*", factor, c.Literal(text)) if text.isdigit():
            steps = linear(factor)
            return None if steps is None else _scaled(steps, int(text))
        case c.Binary("+", left, right):
            return _total((left, right), ())
        case c.Sum(terms, less):
            return _total(terms, less)
    return None


def _total(terms: Sequence[c.Expr], less: Sequence[c.Expr]) -> Linear | None:
    found: Linear = {}
    for expr, sign in (*((t, 1) for t in terms), *((t, -1) for t in less)):
        steps = linear(expr)
        if steps is None:
            return None
        found = _sum(found, _scaled(steps, sign))
    return found


def _scaled(steps: Linear, factor: int) -> Linear:
    return {v: k * factor for v, k in steps.items()}


def _sum(a: Linear, b: Linear) -> Linear:
    return {v: a.get(v, 0) + b.get(v, 0) for v in {**a, **b}}
