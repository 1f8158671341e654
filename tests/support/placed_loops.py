"""Small loops of tests, with what the plan knows of those of programs: extents, and the places of elements."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from autodiff_gen.codegen.executed_trees import value_of
from autodiff_gen.ir.types import Size
from autodiff_gen.lowering.c import c_ast as c
from autodiff_gen.lowering.c import c_query, c_syntax
from autodiff_gen.lowering.loops.memory import CALLER, Index, Memory, local_array

ARENA = c.Member("t", "arena")


def counted(variable: str, extent: Size, body: c.Statements, **how: Any) -> c.For:
    """A loop from 0 on."""
    return c.For(variable, c_syntax.size(extent), body, extent=extent, **how)


def pointer(name: str, first: int, size: int = 64, *, comment: str = "", is_float: bool = True) -> c.Declare:
    """A pointer to so many elements of the arena, from number `first` on."""
    start, end = 4 * first, 4 * (first + size)
    memory = Memory("t->arena", "t->arena", start, 4, start, end, is_float)
    c_type = "float *" if is_float else "int32_t *"
    place = c.plus(ARENA, [c.number(first)])
    return c.Declare(c_type, ((name, place),), True, comment, memory)


def at(array: str, *terms: c.Expr | int) -> c.Element:
    """An element of an array; its place is known once it is `placed`."""
    return c.Element(c.Name(array), c.total([c.number(t) if isinstance(t, int) else t for t in terms]))


def placed(tree: c.Statements, floats: Collection[str] = ()) -> c.Statements:
    """Statements whose elements have places in the arrays that these declare, and in those of the caller and states.
    floats: the caller's arrays of floats."""
    known: dict[c.Expr, Memory | None] = {}
    for s in c_query.statements(tree):
        if isinstance(s, c.Declare) and s.is_pointer:
            known[c.Name(s.variables[0][0])] = s.memory
        elif isinstance(s, c.Array):
            known[c.Name(s.name)] = local_array(s.name, is_float=s.c_type == "float")

    def change(node: Any) -> Any:
        if not isinstance(node, c.Element):
            return node
        if isinstance(node.array, c.Member):
            state = f"{node.array.pointer}->{node.array.name}"
            return replace(node, access=Memory(state, state, 0, 4).at(_linear(node.index)))
        (name,) = c_query.words(node.array)
        memory = known.get(node.array, Memory(CALLER, name, 0, 4, is_float=name in floats))
        return node if memory is None else replace(node, access=memory.at(_linear(node.index)))

    return c_query.rewritten(tree, change)


def _linear(index: c.Expr) -> Index | None:
    """An index that is linear in its variables: its value where all are 0, and by how much one of each adds to it."""
    names = c_query.names(index)
    start = value_of(index, dict.fromkeys(names, 0.0))
    if start is None:
        return None
    steps = {}
    for name in names:
        value = value_of(index, {**dict.fromkeys(names, 0.0), name: 1.0})
        assert value is not None
        steps[name] = int(value - start)
    return Index(steps, int(start))
