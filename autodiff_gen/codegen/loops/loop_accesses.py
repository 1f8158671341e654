"""What loops of generated C read and write: places in memory, as far as the tree tells them.

The plan knows where each array is; this is read from the tree: where the pointers are declared to point to, and the
indices of the elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ...lowering.c import c_ast as c
from ...lowering.c import c_query

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
    is_float: bool = False  # False also where it is not known

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
Change: TypeAlias = Callable[[c.For, Pointers, bool], c.Statements]


def with_innermost_loops(
    tree: c.Statements, pointers: Pointers, change: Change, is_inside: bool = False
) -> c.Statements:
    """The tree with innermost loops replaced by what `change` makes of them, given the pointers in scope, and whether a
    loop is inside of another one."""
    out: list[c.Statement] = []
    for statement in tree:
        if isinstance(statement, c.For) and statement.blocks:
            pointers = pointers | {o.name: local_array("float", o.name) for o in statement.blocks}
        match statement:
            case c.Declare(variables=((name, value),)) if statement.is_pointer and value is not None:
                pointers[name] = declared(statement, name, value, pointers)
            case c.Array(c_type, name):
                pointers[name] = local_array(c_type, name)
            case c.For(body=body) if any(True for _ in c_query.loops(body)):
                inside = with_innermost_loops(body, dict(pointers), change, True)
                statement = statement if inside is body else replace(statement, body=inside)
            case c.For():
                out += change(statement, pointers, is_inside)
                continue
            case c.If(test, then, otherwise):
                parts = (
                    with_innermost_loops(p, dict(pointers), change, is_inside) for p in (then, otherwise)
                )
                statement = c.If(test, *parts)
            case c.Block(body):
                inside = with_innermost_loops(body, dict(pointers), change, is_inside)
                statement = statement if inside is body else c.Block(inside)
        out.append(statement)
    return c_query.unchanged(tree, out) or tuple(out)


def local_array(c_type: str, name: str) -> Memory:
    return Memory(f"{LOCAL}{name}", name, 0, SIZES.get(c_type, 4), is_float=c_type == "float")


def declared(pointer: c.Declare, name: str, value: c.Expr, pointers: Pointers) -> Memory:
    """What a declared pointer points to."""
    c_type = pointer.c_type.removeprefix("const ").rstrip(" *")
    element, is_float = SIZES.get(c_type, 4), c_type == "float"
    if isinstance(value, c.Cast):
        value = value.operand
    source = memory_of(value, pointers)
    if source is None:
        return Memory(UNKNOWN, name, 0, element)
    memory, offset = source
    if any(offset.get(v) for v in offset if v):  # it moves
        return replace(memory, anchor=name, origin=0, element=element, is_float=is_float)
    origin = memory.origin + offset.get("", 0)
    if pointer.bytes:
        end = origin + pointer.bytes
        return Memory(memory.root, memory.anchor, origin, element, origin, end, is_float)
    return replace(memory, origin=origin, element=element, is_float=is_float)


def memory_of(array: c.Expr, pointers: Pointers) -> tuple[Memory, Linear] | None:
    """What an array is part of, and the bytes from there to its first element."""
    match array:
        case c.Binary("+", start, moved):
            source, steps = memory_of(start, pointers), linear(moved)
            if source is None or steps is None:
                return None
            memory, offset = source
            return memory, _sum(offset, _scaled(steps, memory.element))
        case c.Member(pointer, name):
            place = f"{pointer}->{name}"
            return pointers.get(place) or Memory(place, place, 0, 4), {}
        case c.Name(name):
            return pointers.get(name) or Memory(CALLER, name, 0, 4), {}
    return None


def all_accesses(loop: c.For, pointers: Pointers) -> list[Access] | None:
    """Those of an innermost loop; None where they are not known."""
    accesses: list[Access] = []
    for statement in loop.body:
        found = accesses_of(statement, pointers)
        if found is None:
            return None
        accesses += found
    return accesses


def are_independent(accesses: Sequence[Access], variable: str, count: int) -> bool:
    writes = [a for a in accesses if a.is_written]
    return all(never_meet(w, a, variable, count) for w in writes for a in accesses)


def accesses_of(statement: c.Statement, pointers: Pointers) -> list[Access] | None:
    """What a statement reads and writes, parts of it included; None where that is not known."""
    found = elements_of(statement, pointers)
    return None if found is None else [access for _, access in found]


def elements_of(statement: c.Statement, pointers: Pointers) -> list[tuple[c.Element, Access]] | None:
    """The elements in a statement, each with its access; None where other memory may be read or written."""
    out: list[tuple[c.Element, Access]] = []
    assigned = set[int]()
    for node in c_query.nodes(statement):
        if isinstance(node, c.Element):
            found = memory_of(node.array, pointers)
            if found is None:
                return None
            memory, offset = found
            steps = linear(node.index)
            place = None if steps is None else _sum(offset, _scaled(steps, memory.element))
            out.append((node, Access(memory, place, id(node) in assigned)))
        elif isinstance(node, (c.Assign, c.StepTemplate)):
            assigned.update(map(id, _targets_of(node)))
        elif isinstance(node, (c.Array, c.ExprStatement, c.Return, c.Probe)) or (
            isinstance(node, c.Declare) and node.is_pointer
        ):
            return None
    return out


def targets(statement: c.Statement) -> Iterator[c.Expr]:
    """The expressions that are assigned to."""
    for node in c_query.nodes(statement):
        yield from _targets_of(node)


def _targets_of(node: Any) -> Sequence[c.Expr]:
    """The expressions that a node itself assigns to."""
    if isinstance(node, c.Assign):
        return (node.target,)
    if isinstance(node, c.StepTemplate):
        return node.accumulators
    return ()


def never_meet(write: Access, other: Access, variable: str, count: int) -> bool:
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
