"""How rules of the table are written: most say our function and the names of PyTorch's arguments in its order."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

from ... import functional as F
from ..imported.program import Shape, ValueRef, WeightRef

Arguments: TypeAlias = Mapping[str, Any]


class Unsupported(Exception):
    """A rule cannot convert a call; the text says why, and what to use instead."""


class Converter(Protocol):
    """What rules use of a conversion: see convert.py."""

    zeros: set[str]
    sizes: set[str]
    empty: set[Any]
    merged: dict[Any, Shape]

    def shape(self, ref: Any) -> Shape: ...

    def dtype(self, ref: Any) -> str: ...

    def constant(self, array: Any) -> WeightRef: ...

    def emit(self, function: str, *args: Any, **options: Any) -> ValueRef: ...

    def emit_all(self, function: str, results: Any, *args: Any, **options: Any) -> list[ValueRef]: ...

    def names(self) -> tuple[str, ...]: ...


Rule: TypeAlias = Callable[[Converter, Arguments], Any]  # the result, or a list of them


def same(function: str, arguments: str) -> Rule:
    """A call of our function. arguments: the names of PyTorch's in the order of our parameters; a missing one has our
    default value, which is PyTorch's, and "-" leaves one out."""
    parameters = list(inspect.signature(getattr(F, function)).parameters.values())
    places = [(p, name) for p, name in zip(parameters, arguments.split(), strict=False) if name != "-"]
    assert len(arguments.split()) <= len(parameters), function

    def rule(c: Converter, a: Arguments) -> Any:
        return c.emit(function, *positional(places, a), **by_name(places, a))

    return rule


def positional(places: list[tuple[inspect.Parameter, str]], a: Arguments) -> list[Any]:
    """The operands, and what our function has no default for."""
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
    """The others, if they differ from our default."""
    rest = places[len(positional(places, a)) :]
    given = [(parameter, a[name]) for parameter, name in rest if a.get(name) is not None]
    return {p.name: value for p, value in given if not _equal(value, p.default)}


def _equal(value: Any, default: Any) -> bool:
    """Whether an argument has the default value; a tuple of equal numbers is one number."""
    if isinstance(value, tuple) and not isinstance(default, tuple) and value:
        return all(v == default for v in value)
    return type(value) in (int, float, bool, str) and bool(value == default)


def promoting(rule: Rule, always: bool = False) -> Rule:
    """A rule whose operands `self` and `other` PyTorch converts to float if one of them is; always: also otherwise."""

    def converted(c: Converter, a: Arguments) -> Any:
        given = {name: a[name] for name in ("self", "other") if name in a}
        kinds = {name: _kind(c, v) for name, v in given.items()}
        if not always and "float" not in kinds.values():
            return rule(c, a)
        floats = {n: c.emit("to", v, "f32") for n, v in given.items() if kinds[n] == "integer tensor"}
        return rule(c, {**a, **floats})

    return converted


def _kind(c: Converter, operand: Any) -> str:
    if isinstance(operand, ValueRef) and operand.name in c.sizes:
        raise Unsupported("computes with the number of samples; use a mean over them")
    if isinstance(operand, ValueRef | WeightRef):
        return "float" if c.dtype(operand).startswith("float") else "integer tensor"
    return "float" if isinstance(operand, float) else "integer"


def operator(sign: str) -> Rule:
    """An operator of Python on two operands; `alpha` multiplies the second."""

    def rule(c: Converter, a: Arguments) -> Any:
        other = a["other"]
        if a.get("alpha", 1) != 1:
            number = not isinstance(other, ValueRef | WeightRef)
            other = other * a["alpha"] if number else c.emit("{} * {}", other, a["alpha"])
        return c.emit(f"{{}} {sign} {{}}", a["self"], other)

    return rule


def itself(c: Converter, a: Arguments) -> Any:
    """The operand: a copy, or a view of all of it."""
    return next(iter(a.values()))


def axis(c: Converter, ref: Any, dim: int) -> int:
    """A dim from 0."""
    return dim % max(1, len(c.shape(ref)))
