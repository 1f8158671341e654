"""Fields of JSON objects by type."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
LONGEST = 10_000  # characters of a text
INTEGER = 1 << 63  # no integer is larger in magnitude


class Malformed(ValueError):
    """A value of the wrong type, such as a missing field; the message names it."""


def field(entry: Any, name: str, kind: type[T]) -> T:
    """A field of an object. Raises Malformed."""
    value = entry.get(name) if type(entry) is dict else None
    if type(value) is not kind:
        raise Malformed(f"{name} is {_named(value)}, not {_KINDS[kind]}")
    return value


def text(value: Any, what: str) -> str:
    """A text of at most LONGEST characters."""
    if type(value) is not str or len(value) > LONGEST:
        raise Malformed(f"{what} is {_named(value)}, not a short text")
    return value


def integer(value: Any, what: str, least: int = -INTEGER, most: int = INTEGER) -> int:
    """An integer in a range, both ends included."""
    if type(value) is not int or not least <= value <= most:
        raise Malformed(f"{what} is {_named(value)}, not an integer from {least} to {most}")
    return value


def each(value: Any, what: str, read: Callable[[Any], T]) -> tuple[T, ...]:
    """The items of a list."""
    if type(value) is not list:
        raise Malformed(f"{what} is {_named(value)}, not a list")
    return tuple(map(read, value))


def only(entry: Any, what: str) -> tuple[str, Any]:
    """The name and the value of the only field of an object; the name says the object's kind."""
    if type(entry) is not dict or len(entry) != 1:
        raise Malformed(f"{what} is {_named(entry)}, not an object with one field")
    return next(iter(entry.items()))


def objects(entry: Any, name: str) -> Iterator[Mapping[str, Any]]:
    """The objects in a field that is a list."""
    listed: Sequence[Any] = field(entry, name, list)
    for item in listed:
        if type(item) is not dict:
            raise Malformed(f"{name} has {_named(item)}, not an object")
        yield item


_KINDS: Mapping[type, str] = {
    dict: "an object",
    list: "a list",
    str: "a text",
    int: "an integer",
    bool: "a truth value",
}


def _named(value: Any) -> str:
    """A value as messages describe it."""
    if value is None:
        return "missing"
    if type(value) in (int, float, bool):
        return repr(value)[:40]
    return _KINDS.get(type(value), "of an unknown type")
