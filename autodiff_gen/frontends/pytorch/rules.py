"""Helpers of the table's rules, in addition to the helpers for all importers (imported/rules.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from ..imported.program import Shape, ValueRef, Weight, WeightRef
from ..imported.rules import Arguments as Arguments
from ..imported.rules import Unsupported as Unsupported
from ..imported.rules import same as same


class Converter(Protocol):
    """The interface of a conversion for rules: see convert.py."""

    zeros: set[str]
    sizes: set[str]
    empty: set[Any]
    merged: dict[Any, Shape]
    weights: dict[str, Weight]
    shapes: dict[str, Shape]
    dtypes: dict[str, str]

    def shape(self, ref: Any) -> Shape: ...

    def dtype(self, ref: Any) -> str: ...

    def constant(self, array: Any) -> WeightRef: ...

    def emit(self, function: str, *args: Any, **options: Any) -> ValueRef: ...

    def emit_all(self, function: str, results: Any, *args: Any, **options: Any) -> list[ValueRef]: ...

    def names(self) -> tuple[str, ...]: ...

    def update(self, given: ValueRef, new: ValueRef) -> None: ...


NO_ELEMENTS = object()  # represents a tensor without elements, such as the rest that a rotation leaves
Rule: TypeAlias = Callable[[Converter, Arguments], Any]  # the result, or a list of them


def promoting(rule: Rule, always: bool = False) -> Rule:
    """A rule whose operands `self` and `other` are converted to float if one of them is a float, as in PyTorch; always:
    also if both are integers."""

    def converted(c: Converter, a: Arguments) -> Any:
        given = {name: a[name] for name in ("self", "other") if name in a}
        kinds = {name: _kind(c, v) for name, v in given.items()}
        if not always and "float" not in kinds.values():
            return rule(c, a)
        floats = {n: c.emit("to", v, "f32") for n, v in given.items() if kinds[n] == "integer tensor"}
        return rule(c, {**a, **floats})

    return converted


def is_integer(c: Converter, operand: Any) -> bool:
    """Whether an operand is a tensor of integers, or a mask."""
    return _kind(c, operand) == "integer tensor"


def _kind(c: Converter, operand: Any) -> str:
    size = isinstance(operand, ValueRef) and operand.name in c.sizes
    if isinstance(operand, ValueRef | WeightRef) and not size:
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


def is_empty(given: Any) -> bool:
    """Whether an argument is a tensor without elements, or has one inside."""
    return given is NO_ELEMENTS or (isinstance(given, tuple) and any(map(is_empty, given)))


def itself(c: Converter, a: Arguments) -> Any:
    """The operand itself, for operators that copy it or view all of it."""
    return next(iter(a.values()))


def axis(c: Converter, ref: Any, dim: int) -> int:
    """A dim counted from 0, not from the end."""
    return dim % max(1, len(c.shape(ref)))
