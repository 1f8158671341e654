"""Queries on a C syntax tree: names, called functions, comments of steps; and trees made from trees."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, TypeVar

from .c_ast import (
    Array,
    Block,
    BlockOperand,
    Call,
    Cast,
    Comment,
    Declare,
    Expr,
    For,
    If,
    Index,
    Literal,
    Member,
    Name,
    Probe,
    Return,
    Statement,
    Statements,
    StepTemplate,
    Table,
    Template,
)

T = TypeVar("T")


@cache
def functions_of(template: str) -> tuple[str, ...]:
    """The functions that an op's C template calls: the names before its parentheses."""
    found = []
    for text in template.split("(")[:-1]:
        size = next((k for k, c in enumerate(reversed(text)) if not (c.isalnum() or c == "_")), len(text))
        found.append(text[len(text) - size :])
    return tuple(dict.fromkeys(name for name in found if name and name != "if"))


@cache
def reads(template: str, count: int) -> list[tuple[int, bool]]:
    """For each operand, how often a template reads it, and whether only the alternatives of `condition ? a : b` read
    it."""
    condition = template.partition("?")[0]
    places = [f"{{{k}}}" for k in range(count)]
    return [(max(template.count(place), 1), place not in condition) for place in places]


_PLAIN = ("str", "int", "bool", "tuple[int, ...]", "tuple[str, ...]", "tuple[tuple[str, int], ...]",
          "Memory | None", "Size | None", "Called | OfArray | None")  # fmt: skip


@cache
def node_fields(kind: Any) -> tuple[str, ...] | None:
    """The names of the fields of a kind of node that may hold nodes; None for other types."""
    return tuple(f.name for f in fields(kind) if f.type not in _PLAIN) if is_dataclass(kind) else None


@cache
def _reversed_fields(kind: Any) -> Callable[[Any], Sequence[Any]] | tuple[()] | None:
    """A function that gives the fields of `node_fields`, the last first; () without such fields, None for other
    types."""
    names = node_fields(kind)
    if not names:
        return None if names is None else ()
    if len(names) < 2:  # an attrgetter of one name returns no tuple
        return lambda node: (getattr(node, names[0]),)
    return operator.attrgetter(*reversed(names))


BODIES: Mapping[Any, Sequence[str]] = {For: ("body",), Block: ("body",), If: ("then", "otherwise")}


def nodes(tree: Any, stop: type[Any] | None = None) -> Iterator[Any]:
    """Every node of a tree or of a sequence of trees, parents first; nothing below nodes of the type `stop`."""
    pending = [tree]
    while pending:
        node = pending.pop()
        kind: Any = type(node)
        if kind is tuple or kind is list:
            pending += node[::-1]
        elif (get := _reversed_fields(kind)) is not None:
            yield node
            if get and kind is not stop:
                pending += get(node)


def children(node: Any) -> Iterator[Any]:
    """The nodes right below a node."""
    kind: Any = type(node)
    for name in node_fields(kind) or ():
        value = getattr(node, name)
        yield from value if isinstance(value, tuple) else (value,)


def statements(tree: Any) -> Iterator[Any]:
    """The statements of a tree, or of a sequence of them, outer ones first; expressions are not traversed."""
    pending = [tree]
    while pending:
        node = pending.pop()
        kind: Any = type(node)
        if kind is tuple or kind is list:
            pending += node[::-1]
            continue
        yield node
        pending += [getattr(node, name) for name in reversed(BODIES.get(kind, ()))]


def loops(tree: Any) -> Iterator[For]:
    """The loops of statements, or of a sequence of them, outer ones first."""
    return (node for node in statements(tree) if isinstance(node, For))


def called_by(node: Any) -> tuple[str, ...]:
    """The functions that a node itself calls."""
    if isinstance(node, Call):
        return (node.function,)
    return node.calls if isinstance(node, (Template, StepTemplate)) else ()


def calls(tree: Any) -> set[str]:
    """The functions that a tree calls."""
    return set[str]().union(*map(called_by, nodes(tree)))


def types(tree: Any) -> set[str]:
    """The types of a tree's tables."""
    return {node.c_type for node in nodes(tree) if isinstance(node, Table)}


def words(expr: Expr) -> list[str]:
    """The names, numbers, members of structs and types of casts in an expression, in order."""
    found = []
    for node in nodes(expr):
        if isinstance(node, Name | Literal):
            found.append(node.text)
        elif isinstance(node, Member):
            found.append(node.name)
        elif isinstance(node, Cast):
            found.append(node.c_type.rstrip(" *"))
    return found


def names(tree: Any) -> set[str]:
    """The names that a tree reads or assigns to."""
    return {node.text for node in nodes(tree) if isinstance(node, Name)}


def declared(tree: Any) -> Iterator[str]:
    """The names that a tree declares."""
    for node in nodes(tree):
        if isinstance(node, (Array, BlockOperand)):
            yield node.name
        elif isinstance(node, For):
            yield node.variable
        elif isinstance(node, Declare):
            yield from (name for name, _ in node.variables)


def variables(tree: Any) -> set[str]:
    """The names in a tree, with the names that it declares."""
    return names(tree).union(declared(tree))


# Rewriting


def rewritten(tree: T, change: Callable[[Any], Any]) -> T:
    """A tree with `change` applied to its nodes, children first. It may return several statements, or none, as a
    tuple."""
    kind: Any = type(tree)
    if kind is tuple or kind is list:
        return _with_parts(tree, [rewritten(part, change) for part in tree])  # type: ignore[attr-defined, no-any-return]
    names = node_fields(kind)
    if names is None:
        return tree
    changed: dict[str, Any] = {}
    for name in names:
        value = getattr(tree, name)
        made = rewritten(value, change)
        if made is not value:
            changed[name] = made
    return change(_with_fields(tree, changed) if changed else tree)  # type: ignore[no-any-return]


def with_sums(tree: T) -> T:
    """A tree with expressions of C in place of indices."""
    return rewritten(tree, lambda node: node.sum if isinstance(node, Index) else node)


def with_loops(tree: Statements, change: Callable[[For], Statement]) -> Statements:
    """Statements with `change` applied to their loops, inner ones first; expressions are not traversed."""
    made: list[Statement] = []
    for node in tree:
        for name in BODIES.get(type(node), ()):
            old = getattr(node, name)
            new = with_loops(old, change)
            if new is not old:
                node = _with_fields(node, {name: new})
        made.append(change(node) if isinstance(node, For) else node)
    return _with_parts(tree, made)  # type: ignore[no-any-return]


def _with_parts(tree: Any, made: Sequence[Any]) -> Any:
    """A sequence with new parts; a tuple in place of a single part adds several parts."""
    if type(tree) is tuple and len(made) == len(tree) and all(map(operator.is_, made, tree)):
        return tree
    out: list[Any] = []
    for part, new in zip(tree, made, strict=True):
        if type(new) is tuple and type(part) is not tuple:
            out += new
        else:
            out.append(new)
    return tuple(out)


def _with_fields(node: T, changed: Mapping[str, Any]) -> T:
    """Like dataclasses.replace, but faster: the constructor takes all fields of a node."""
    return type(node)(**{**vars(node), **changed})


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
    """A probe after the comment of every step that has an id."""

    def change(node: Any) -> Any:
        if isinstance(node, Comment) and node.step in ids:
            return node, Probe(ids[node.step])
        return node

    return rewritten(tuple(tree), change) if ids else tuple(tree)


def before_returns(tree: Iterable[Statement], statement: Statement) -> Statements:
    """The tree with a statement before every return."""
    return rewritten(tuple(tree), lambda node: (statement, node) if isinstance(node, Return) else node)


def step_comments(tree: Any) -> dict[str, str]:
    """The comment of every step, by its number."""
    return {n.step: n.text for n in nodes(tree) if isinstance(n, Comment) and n.step}
