"""Python text of calls and nested constructors, broken into lines if it is long."""

from __future__ import annotations

import json
import keyword
import re
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ... import nn
from ...nn.alternatives import MODULE

WIDTH = 100


class Nested(NamedTuple):
    """`head`, the items with commas between them, `tail`."""

    head: str
    items: Sequence[Text]
    tail: str


Text: TypeAlias = "str | Nested"


def flat(text: Text) -> str:
    """The text on one line."""
    return text if isinstance(text, str) else text.head + ", ".join(map(flat, text.items)) + text.tail


def lines(text: Text, indent: int = 0, before: str = "", after: str = "") -> list[str]:
    """The text on one line, or with one item on each line if it is longer than WIDTH."""
    whole = " " * indent + before + flat(text) + after
    if isinstance(text, str) or not text.items or len(whole) <= WIDTH:
        return [whole]
    inner = [line for item in text.items for line in lines(item, indent + 4, after=",")]
    return [" " * indent + before + text.head, *inner, " " * indent + text.tail + after]


def prefixed(prefix: str, text: Text) -> Text:
    """The text after a prefix."""
    return prefix + text if isinstance(text, str) else Nested(prefix + text.head, text.items, text.tail)


class Placeholders:
    """Names that are printed in place of literals. A name is as long as its literal, so that the layout is the same,
    and has letters that no other part of the text has."""

    FIRST, COUNT = 0x4E00, 20_000  # CJK ideographs

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}  # by placeholder
        self.texts: dict[str, str] = {}  # of literals, by placeholder
        self._of: dict[str, str] = {}  # by the text of the literal
        self._numbers: Counter[int] = Counter()  # of placeholders by length

    def of(self, text: str, value: Any) -> str:
        """The placeholder of a literal."""
        if text not in self._of:
            number = self._numbers[len(text)]
            self._numbers[len(text)] += 1
            digits = (number // self.COUNT**k % self.COUNT for k in range(len(text)))
            name = "".join(chr(self.FIRST + digit) for digit in digits)
            self._of[text], self.values[name], self.texts[name] = name, value, text
        return self._of[text]

    def filled(self, text: str) -> str:
        """A text with the literals in place of their placeholders. Raises KeyError for an unknown one."""
        return re.sub(r"[\u4e00-\u9fff]+", lambda match: self.texts[match.group()], text)


_placeholders: ContextVar[Placeholders | None] = ContextVar("placeholders", default=None)


@contextmanager
def placeholders() -> Iterator[Placeholders]:
    """In the block `literal` gives placeholders: see verify_source.py."""
    found = Placeholders()
    token = _placeholders.set(found)
    try:
        yield found
    finally:
        _placeholders.reset(token)


def literal(value: Any) -> str:
    """Python text of a number, string, small array, None, or a tuple of them. Raises TypeError for another value."""
    text, marks = _literal(value), _placeholders.get()
    return text if marks is None else marks.of(text, value)


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


# Names of attributes that every module has: a child of such a name is an item of a ModuleDict.
OF_MODULES = {*dir(nn.Module), *vars(nn.Module()), "_buffers", *MODULE}


def is_attribute(name: str) -> bool:
    """Whether a part of a module with this name can be written as an attribute."""
    free = not name.startswith("__") and name not in OF_MODULES
    return free and name.isidentifier() and name.isascii() and not keyword.iskeyword(name)


def member(owner: str, name: str) -> str:
    """Python text that reads an attribute of an object."""
    return f"{owner}.{name}" if is_attribute(name) else f"getattr({owner}, {literal(name)})"


def assignment(owner: str, name: str, value: str) -> str:
    """A statement that sets an attribute of an object."""
    if is_attribute(name):
        return f"{owner}.{name} = {value}"
    return f"setattr({owner}, {literal(name)}, {value})"


def unused(name: str, taken: Container[str]) -> str:
    """The name, with `_` appended while it is taken."""
    while name in taken:
        name += "_"
    return name


def pascal_case(name: str) -> str:
    """`out_proj` -> OutProj."""
    words = "".join(c if c.isalnum() else " " for c in name.replace("_", " ")).split()
    joined = "".join(word[:1].upper() + word[1:] for word in words if word.isascii())
    return joined if joined.isidentifier() else f"Module{joined}"
