"""Arguments of functions: conversion to values, axes, and the rejection of PyTorch's arguments that are unsupported."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar, cast

import numpy.typing as npt

from ..errors import ShapeError
from ..ir.build import apply, batch_hint, constant
from ..ir.node import Value
from ..ir.origin import LOSS, building
from ..ir.types import Dim, normalise_axes, plain


class SupportsArray(Protocol):
    """An object that NumPy converts to an array: a parameter of a module, a tensor of PyTorch, a number of NumPy."""

    def __array__(self, *args: Any, **options: Any) -> Any: ...


Dims: TypeAlias = int | Sequence[int] | None
TensorLike: TypeAlias = Value | npt.NDArray[Any] | SupportsArray | float  # an operand of a function
_F = TypeVar("_F", bound=Callable[..., Any])


def torch_lacks(**defaults: Any) -> Callable[[_F], _F]:
    """A decorator for a function that lacks some of PyTorch's arguments: they may be given by name with PyTorch's
    default values; other values raise ShapeError."""

    def wrap(f: _F) -> _F:
        @functools.wraps(f)
        def checked(*args: Any, **kwargs: Any) -> Any:
            for name in [k for k in kwargs if k in defaults]:
                given, default = kwargs.pop(name), defaults[name]
                if given is not default and (getattr(given, "ndim", 0) > 0 or given != default):
                    whose = type(args[0]).__name__ if f.__name__ == "__init__" else f.__qualname__
                    raise ShapeError(f"{whose}: the argument {name!r} is not supported")
            return f(*args, **kwargs)

        checked.unsupported = tuple(defaults)  # type: ignore[attr-defined]  # for docs/operations.md
        return cast(_F, checked)

    return wrap


def loss_function(f: _F) -> _F:
    """A decorator: the values that the function computes belong to the loss, for comments in the generated code."""

    @functools.wraps(f)
    def inside(*args: Any, **kwargs: Any) -> Any:
        with building("loss", LOSS):
            return f(*args, **kwargs)

    return cast(_F, inside)


def as_value(x: TensorLike) -> Value:
    """x, a graph value, array, number or batch extent, as a graph value. Raises ShapeError for anything else."""
    if isinstance(x, Value):
        return x
    if isinstance(x, int | float):
        return constant(float(x))
    if isinstance(x, Dim):
        return apply("extent", extent=x)
    return constant(x)


def describe(*values: Value) -> str:
    """Names and types for messages: `x: f32[2,3], f32[3]`."""
    return ", ".join(f"{v.name}: {v.type}" if v.name else repr(v.type) for v in values)


def shape_error(name: str, values: Sequence[Value], rule: str) -> ShapeError:
    """The error `name(types of values): rule`."""
    return ShapeError(f"{name}({describe(*values)}): {rule}{batch_hint(values)}")


def list_of(name: str, x: Value, what: str, given: Any) -> tuple[Any, ...]:
    """One or several integers or batch extents, as a tuple. Raises ShapeError for anything else."""
    items = tuple(given) if isinstance(given, Sequence) and not isinstance(given, str) else (given,)
    numbers = tuple(map(plain, items))
    if not all(isinstance(k, int | Dim) and not isinstance(k, bool) for k in numbers):
        raise shape_error(name, [x], f"{what}={given!r} must be integers")
    return numbers


def axes_of(name: str, x: Value, dim: Dims) -> tuple[int, ...]:
    """dim as sorted non-negative axes; None and () are all axes."""
    dim = plain(dim)
    if dim is None or (isinstance(dim, Sequence) and not dim):
        return tuple(range(x.ndim))
    given = list_of(name, x, "dim", dim)
    try:
        return normalise_axes(given, x.ndim)
    except ShapeError as error:
        raise shape_error(name, [x], f"dim={dim}: {error}") from None


def axis_of(name: str, x: Value, dim: int) -> int:
    dim = plain(dim)
    if not isinstance(dim, int):
        raise shape_error(name, [x], f"dim must be one integer, not {dim!r}")
    return axes_of(name, x, dim)[0]
