"""How rules of importers are written: most name our function, and the original's arguments in our function's order."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ... import functional as F
from .program import ValueRef, WeightRef

Arguments: TypeAlias = Mapping[str, Any]
# (the conversion, see convert.py of the importer; arguments) -> the result, or a list of them
Rule: TypeAlias = Callable[[Any, Arguments], Any]


class Unsupported(Exception):
    """A rule cannot convert a call; the text says why, and what to use instead."""


def same(function: str, arguments: str) -> Rule:
    """A call of our function. arguments: the names of the original's arguments in the order of our parameters. "-"
    skips a parameter. An argument that a call lacks has our default value, which is the original's."""
    parameters = list(inspect.signature(getattr(F, function)).parameters.values())
    places = [(p, name) for p, name in zip(parameters, arguments.split(), strict=False) if name != "-"]
    assert len(arguments.split()) <= len(parameters), function

    def rule(c: Any, a: Arguments) -> Any:
        return c.emit(function, *positional(places, a), **by_name(places, a))

    return rule


def positional(places: list[tuple[inspect.Parameter, str]], a: Arguments) -> list[Any]:
    """The operands, and the arguments without a default in our function."""
    found = []
    for parameter, name in places:
        given = a.get(name)
        required = parameter.default is parameter.empty
        if not required and not isinstance(given, ValueRef | WeightRef) and given is not None:
            break
        if parameter.kind is parameter.KEYWORD_ONLY:
            break
        found.append(given)
    while found and found[-1] is None:
        found.pop()
    return found


def by_name(places: list[tuple[inspect.Parameter, str]], a: Arguments) -> dict[str, Any]:
    """The other arguments, if they differ from our default."""
    rest = places[len(positional(places, a)) :]
    given = [(parameter, a[name]) for parameter, name in rest if a.get(name) is not None]
    return {p.name: value for p, value in given if not _equal(value, p.default)}


def _equal(value: Any, default: Any) -> bool:
    """Whether an argument has the default value; a tuple of equal numbers equals the number."""
    if isinstance(value, tuple) and not isinstance(default, tuple) and value:
        return all(v == default for v in value)
    return type(value) in (int, float, bool, str) and bool(value == default)
