"""Small loops of tests, with the extents, indices and memory of arrays that the plan knows in programs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

from autodiff_gen.ir.types import Size
from autodiff_gen.lowering.c import c_ast as c
from autodiff_gen.lowering.c import c_query, c_syntax
from autodiff_gen.lowering.loops.pointed_memory import CALLER, PointedMemory, local_array

ARENA = c.Member("t", "arena")


def counted(variable: str, extent: Size, body: c.Statements, **how: Any) -> c.For:
    """A loop from 0 on."""
    return c.For(variable, c_syntax.size(extent), body, extent=extent, **how)


@dataclass(frozen=True)
class Pointer(c.Declare):
    memory: PointedMemory | None = field(default=None, compare=False)


def pointer(name: str, first: int, size: int = 64, *, comment: str = "", is_float: bool = True) -> Pointer:
    """A pointer to so many elements of the arena, from number `first` on."""
    start, end = 4 * first, 4 * (first + size)
    memory = PointedMemory("t->arena", "t->arena", start, 4, start, end, is_float)
    c_type = "float *" if is_float else "int32_t *"
    place = c.plus(ARENA, [c.number(first)])
    return Pointer(c_type, ((name, place),), True, comment, memory=memory)


def at(array: str, *terms: c.Expr | int) -> c.Element:
    """An element of an array; its memory is known once it is `placed`."""
    return c.Element(
        c.Name(array), index_of(c.total([c.number(t) if isinstance(t, int) else t for t in terms]))
    )


def index_of(expr: c.Expr) -> c.Index:
    """An expression of C as an index."""
    match expr:
        case c.Index():
            return expr
        case c.Sum(terms, less):
            return c.index(*(_term(t, sign) for sign, parts in ((1, terms), (-1, less)) for t in parts))
    return c.index(_term(expr, 1))


def _term(expr: c.Expr, sign: int) -> tuple[c.Expr, int]:
    match expr:
        case c.Sum():
            return index_of(expr), sign
        case c.Binary("*", factor, c.Literal(number)):
            part, step = _term(factor, sign)
            return part, step * int(number)
    return expr, sign


def placed(tree: c.Statements, floats: Collection[str] = ()) -> c.Statements:
    """Statements whose elements are in the arrays that these declare, and in arrays of the caller and states. floats:
    the caller's arrays of floats."""
    known: dict[c.Expr, PointedMemory | None] = {}
    for s in c_query.statements(tree):
        if isinstance(s, c.Declare) and s.is_pointer:
            known[c.Name(s.variables[0][0])] = s.memory if isinstance(s, Pointer) else None
        elif isinstance(s, c.Array):
            known[c.Name(s.name)] = local_array(s.name, is_float=s.c_type == "float")

    def change(node: Any) -> Any:
        if not isinstance(node, c.Element):
            return node
        if isinstance(node.array, c.Member):
            state = f"{node.array.pointer}->{node.array.name}"
            memory: PointedMemory | None = PointedMemory(state, state, 0, 4)
        else:
            (name,) = c_query.words(node.array)
            memory = known.get(node.array, PointedMemory(CALLER, name, 0, 4, is_float=name in floats))
        return replace(node, index=index_of(node.index), memory=memory)

    return c_query.rewritten(tree, change)
