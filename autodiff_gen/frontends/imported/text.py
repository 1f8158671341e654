"""Python text of calls and of nested constructors, broken into lines where they are long."""

from __future__ import annotations

import json
import keyword
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

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


def literal(value: Any) -> str:
    """A number, string, small array or None as Python writes it."""
    if isinstance(value, np.ndarray):
        return f"np.array({value.tolist()!r}, np.{value.dtype.name})"
    if isinstance(value, float) and not np.isfinite(value):
        return f'float("{value}")'
    return json.dumps(value) if isinstance(value, str) else repr(value)


def is_attribute(name: str) -> bool:
    """Whether a name can be written after a dot."""
    return name.isidentifier() and not keyword.iskeyword(name)


def member(owner: str, name: str) -> str:
    """An attribute of an object."""
    return f"{owner}.{name}" if is_attribute(name) else f"getattr({owner}, {name!r})"


def pascal_case(name: str) -> str:
    """`out_proj` -> OutProj."""
    words = "".join(c if c.isalnum() else " " for c in name.replace("_", " ")).split()
    joined = "".join(word[:1].upper() + word[1:] for word in words)
    return joined if joined.isidentifier() else f"Module{joined}"
