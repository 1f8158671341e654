"""Arguments of functions: values, axes, and the ones that PyTorch has and we have not."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np

from ..errors import ShapeError
from ..ir.build import constant
from ..ir.node import Value
from ..ir.types import Dim, normalise_axes, plain

Dims: TypeAlias = int | Sequence[int] | None
_F = TypeVar("_F", bound=Callable[..., Any])


def torch_lacks(**defaults: Any) -> Callable[[_F], _F]:
    """Refuse, by name, arguments that PyTorch's function has and ours has not; PyTorch's default values
    pass."""

    def wrap(f: _F) -> _F:
        @functools.wraps(f)
        def checked(*args: Any, **kwargs: Any) -> Any:
            for name in [k for k in kwargs if k in defaults]:
                given, default = kwargs.pop(name), defaults[name]
                if given is not default and (np.ndim(given) > 0 or given != default):
                    whose = type(args[0]).__name__ if f.__name__ == "__init__" else f.__qualname__
                    raise ShapeError(f"{whose}: the argument {name!r} is not supported")
            return f(*args, **kwargs)

        checked.refused = tuple(defaults)  # type: ignore[attr-defined]  # for docs/operations.md
        return cast(_F, checked)

    return wrap


def as_value(x: Any) -> Value:
    """x as a graph value."""
    if isinstance(x, Value):
        return x
    if isinstance(x, int | float):
        return constant(float(x))
    try:
        array = np.asarray(x)
    except ValueError:  # lists of different lengths
        array = np.asarray(None)
    if array.dtype.kind not in "fiub":
        raise ShapeError(f"{x!r} cannot be an operand; give a graph value, a NumPy array or a number")
    return constant(x)


def shown(*values: Value) -> str:
    return ", ".join(f"{v.name}: {v.type}" if v.name else repr(v.type) for v in values)


def refusal(name: str, values: Sequence[Value], rule: str) -> ShapeError:
    return ShapeError(f"{name}({shown(*values)}): {rule}")


def list_of(name: str, x: Value, what: str, given: Any) -> tuple[Any, ...]:
    """One whole number, or the extent of the batch axis, or several, as a tuple; ShapeError for anything else."""
    items = tuple(given) if isinstance(given, Sequence) and not isinstance(given, str) else (given,)
    numbers = tuple(map(plain, items))
    if not all(isinstance(k, int | Dim) and not isinstance(k, bool) for k in numbers):
        raise refusal(name, [x], f"{what}={given!r} must be whole numbers")
    return numbers


def axes_of(name: str, x: Value, dim: Dims) -> tuple[int, ...]:
    """dim as sorted non-negative axes; None and () mean all of them."""
    dim = plain(dim)
    if dim is None or (isinstance(dim, Sequence) and not dim):
        return tuple(range(x.ndim))
    given = list_of(name, x, "dim", dim)
    try:
        return normalise_axes(given, x.ndim)
    except ShapeError as error:
        raise refusal(name, [x], f"dim={dim}: {error}") from None


def axis_of(name: str, x: Value, dim: int) -> int:
    dim = plain(dim)
    if not isinstance(dim, int):
        raise refusal(name, [x], f"dim must be one integer, not {dim!r}")
    return axes_of(name, x, dim)[0]
