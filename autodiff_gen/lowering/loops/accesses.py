"""The memory that statements of loops read and write: the accesses of their elements, known from the plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ..c import c_ast as c
from ..c import c_query
from .pointed_memory import Access

T = TypeVar("T")


def with_innermost_loops(tree: c.Statements, change: Callable[[c.For], c.Statement]) -> c.Statements:
    """The tree with `change` applied to innermost loops; it may return a statement that is no loop."""
    innermost = {id(loop) for loop in c_query.loops(tree) if not any(c_query.loops(loop.body))}
    return c_query.with_loops(tree, lambda loop: change(loop) if id(loop) in innermost else loop)


def accesses_of(statements: c.Statement | c.Statements) -> list[Access] | None:
    """The accesses of statements and of their parts; None where other memory may be read or written."""
    found = elements_of(statements)
    return None if found is None else [access for _, access in found]


def elements_of(statements: c.Statement | c.Statements) -> list[tuple[c.Element, Access]] | None:
    """The elements in statements, each with its access; None where other memory may be read or written."""
    out: list[tuple[c.Element, Access]] = []
    assigned = set[int]()
    for node in c_query.nodes(statements):
        if isinstance(node, c.Element):
            access = node.access
            if access is None:
                return None
            out.append((node, replace(access, is_written=id(node) in assigned)))
        elif isinstance(node, (c.Assign, c.StepTemplate)):
            assigned.update(map(id, _targets_of(node)))
        elif isinstance(node, (c.Array, c.ExprStatement, c.Return, c.Probe)) or (
            isinstance(node, c.Declare) and node.is_pointer
        ):
            return None
    return out


def are_independent(accesses: Sequence[Access], variable: str, count: int) -> bool:
    """Whether none of `count` iterations over `variable` reads or writes an element that another iteration writes."""
    writes = [a for a in accesses if a.is_written]
    return all(w.never_meets(a, variable, count) for w in writes for a in accesses)


def _targets_of(node: Any) -> Sequence[c.Expr]:
    """The expressions that a node itself assigns to."""
    if isinstance(node, c.Assign):
        return (node.target,)
    if isinstance(node, c.StepTemplate):
        return node.accumulators
    return ()


def with_variable(tree: T, old: str, *new: str) -> T:
    """A tree in which the sum of the variables `new` replaces the variable `old`."""
    first, *others = map(c.Name, new)
    after = c.index(*((v, 1) for v in (first, *others))) if others else first
    return c_query.rewritten(tree, lambda node: after if node == c.Name(old) else node)
