"""The names and registers of blocks of floats (block_moves.py), and which of them are in the same ones."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...ir.identifiers import unused
from ...lowering.c import c_ast as c
from ...lowering.c import c_query
from .loop_accesses import Access

LOAD, STORE = "AG_LOAD_BLOCK", "AG_STORE_BLOCK"  # runtime/ag_blocks.h


def is_element(node: Any) -> bool:
    return isinstance(node, c.Element)


def registers_of(
    elements: Mapping[c.Element, tuple[bool, bool]],
    accesses: Sequence[tuple[c.Element, Access]],
    body: c.Statements,
    counts: Mapping[c.Element, int],
) -> dict[c.Element, int]:
    """The number of the registers of each block: what replaces another block in memory, is a copy of it, or is the
    sum of it and others, is in the same ones. elements: whether they are loaded, and whether they are stored; counts:
    how often each is in the body."""
    at = dict(reversed(accesses))
    copied = {s.target: s.value for s in body if isinstance(s, c.Assign) and s.op == "="}
    found: dict[c.Element, int] = {}
    addends = _addends(elements, body, counts)
    for e in elements:
        same = (
            k
            for other, k in found.items()
            if distance(at[e], at[other]) == 0
            or (not elements[e][0] and other in (copied.get(e), addends.get(e)))
        )
        found[e] = next(same, len(set(found.values())))
    return found


def distance(a: Access, b: Access) -> int | None:
    """The bytes between two accesses of one iteration; None where that is not known."""
    if a.place is None or b.place is None or a.memory.anchor != b.memory.anchor:
        return None
    if any(a.place.get(v, 0) != b.place.get(v, 0) for v in {*a.place, *b.place} if v):
        return None
    return a.memory.origin + a.place.get("", 0) - b.memory.origin - b.place.get("", 0)


def added_to(body: c.Statements, counts: Mapping[c.Element, int]) -> set[c.Element]:
    """The elements that nothing but one sum reads, to which a product is added: a multiply-add replaces them by the
    sum. counts: how often each element is in the body."""
    found = set()
    for node in c_query.nodes(body):
        if isinstance(node, c.Template) and node.is_sum:
            terms = node.operands
            if any(isinstance(t, c.Template) and t.is_product for t in terms):
                found |= {t for t in terms if isinstance(t, c.Element) and counts[t] == 1}
    return found


def _addends(
    elements: Collection[c.Element], body: c.Statements, counts: Mapping[c.Element, int]
) -> dict[c.Element, c.Element]:
    """For elements that are sums, or functions of one, a term that nothing else reads: a multiply-add replaces it by
    the sum."""
    declared = {name: value for s in body if isinstance(s, c.Declare) for name, value in s.variables}
    found: dict[c.Element, c.Element] = {}
    for s in body:
        if isinstance(s, c.Assign) and s.op == "=" and isinstance(s.target, c.Element):
            terms = [t for t in _terms(_sum_of(s.value, declared)) if isinstance(t, c.Element)]
            alone = (t for t in terms if t in elements and counts[t] == 1 and t not in found.values())
            if (term := next(alone, None)) is not None:
                found[s.target] = term
    return found


def _sum_of(value: c.Expr, declared: Mapping[str, c.Expr | None]) -> c.Expr | None:
    """The expression that a value is the result of, but for functions of it alone."""
    while True:
        match value:
            case c.Name(name) if (of := declared.get(name)) is not None:
                value = of
            case c.Template(operands=(operand,)) | c.Cast(operand=operand):
                value = operand
            case _:
                return value


def _terms(value: c.Expr | None) -> tuple[c.Expr, ...]:
    """The terms of a sum, itself of sums if need be, from which it is computed without another copy."""
    if isinstance(value, c.Template) and value.is_sum:
        return tuple(t for k, v in enumerate(value.operands) for t in (_terms(v) if k == 0 else (v,)))
    return () if value is None else (value,)


def _without_zeros(element: c.Element) -> c.Element:
    """An element without terms of its index that are 0, or cancel as where it is the first one of a local array."""
    match element.index:
        case c.Sum(terms, less) if terms == less:
            return replace(element, index=c.number(0))
        case c.Sum(terms, less):
            return replace(element, index=c.total([t for t in terms if t != c.number(0)], less))
    return element


def elements_of_blocks(tile: c.For, names: Mapping[c.Element, str]) -> dict[c.Element, c.Element]:
    """What the loop over a block reads and writes in place of elements, each in the local array of its name."""
    at = c.total([c.Name(tile.variable)], [tile.start] if tile.start != c.number(0) else [])
    return {e: c.Element(c.Name(name), at) for e, name in names.items()}


def first_elements(tile: c.For, elements: Iterable[c.Element]) -> dict[c.Element, c.Element]:
    """For elements of the loop over a block the elements of its first iteration."""
    old = c.Name(tile.variable)
    moved = {e: c_query.rewritten(e, lambda node: tile.start if node == old else node) for e in elements}
    return {e: _without_zeros(first) for e, first in moved.items()}


def call(function: str, register: int, *arguments: c.Expr) -> c.Statement:
    return c.ExprStatement(c.Call(function, (c.number(register), *arguments)))


def block_names(elements: Iterable[c.Element], *taken: Container[str]) -> dict[c.Element, str]:
    """A name for each block."""
    names: dict[c.Element, str] = {}
    for element in elements:
        names[element] = unused(f"{c_query.words(element.array)[0]}_block", *taken, names.values())
    return names
