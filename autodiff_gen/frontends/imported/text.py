"""Python text of calls and of nested constructors, broken into lines where they are long."""

from __future__ import annotations

import json
import keyword
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ... import nn
from ...nn.alternatives import MODULE

WIDTH = 100


class Nested(NamedTuple):
    """`head` item, item `tail`."""

    head: str
    items: Sequence[Text]
    tail: str


Text: TypeAlias = "str | Nested"


def flat(text: Text) -> str:
    """On one line."""
    return text if isinstance(text, str) else text.head + ", ".join(map(flat, text.items)) + text.tail


def lines(text: Text, indent: int = 0, before: str = "", after: str = "") -> list[str]:
    """On one line, or with one item on each line where that is longer than WIDTH."""
    whole = " " * indent + before + flat(text) + after
    if isinstance(text, str) or not text.items or len(whole) <= WIDTH:
        return [whole]
    inner = [line for item in text.items for line in lines(item, indent + 4, after=",")]
    return [" " * indent + before + text.head, *inner, " " * indent + text.tail + after]


def prefixed(prefix: str, text: Text) -> Text:
    """The text after a prefix."""
    return prefix + text if isinstance(text, str) else Nested(prefix + text.head, text.items, text.tail)


# Placeholders of the literals that are printed now: name -> value, by the text of the literal.
_placeholders: ContextVar[dict[str, tuple[str, Any]] | None] = ContextVar("placeholders", default=None)


@contextmanager
def placeholders() -> Iterator[dict[str, tuple[str, Any]]]:
    """Print a name in place of each literal: the text of a literal -> its name and value. See tree.py."""
    found: dict[str, tuple[str, Any]] = {}
    token = _placeholders.set(found)
    try:
        yield found
    finally:
        _placeholders.reset(token)


def literal(value: Any) -> str:
    """A number, string, small array, None, or a tuple of them as Python writes it. Raises TypeError for another
    value."""
    text = _literal(value)
    known = _placeholders.get()
    return text if known is None else known.setdefault(text, (f"literal_{len(known)}_", value))[0]


def _literal(value: Any) -> str:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        return f"np.array({value.tolist()!r}, np.{value.dtype.name})"
    if isinstance(value, tuple):
        parts = ", ".join(map(_literal, value))
        return f"({parts},)" if len(value) == 1 else f"({parts})"
    if type(value) is float and not np.isfinite(value):
        return f'float("{value}")'
    if type(value) is str:
        return json.dumps(value) if value.isascii() and value.isprintable() else repr(value)
    if value is None or type(value) in (bool, int, float):
        return repr(value)
    raise TypeError(f"{type(value).__name__} is no literal")


# Names that modules have: a child of such a name is an item of a ModuleDict.
OF_MODULES = {*dir(nn.Module), *vars(nn.Module()), "_buffers", *MODULE}


def is_attribute(name: str) -> bool:
    """Whether a name can be written after a dot for a part of a module."""
    free = not name.startswith("__") and name not in OF_MODULES
    return free and name.isidentifier() and name.isascii() and not keyword.iskeyword(name)


def member(owner: str, name: str) -> str:
    """An attribute of an object."""
    return f"{owner}.{name}" if is_attribute(name) else f"getattr({owner}, {literal(name)})"


def assignment(owner: str, name: str, value: str) -> str:
    """A statement that sets an attribute of an object."""
    if is_attribute(name):
        return f"{owner}.{name} = {value}"
    return f"setattr({owner}, {literal(name)}, {value})"


def unused(name: str, taken: Container[str]) -> str:
    """The name, with `_` after it as often as others are called so."""
    while name in taken:
        name += "_"
    return name


def pascal_case(name: str) -> str:
    """`out_proj` -> OutProj."""
    words = "".join(c if c.isalnum() else " " for c in name.replace("_", " ")).split()
    joined = "".join(word[:1].upper() + word[1:] for word in words if word.isascii())
    return joined if joined.isidentifier() else f"Module{joined}"
