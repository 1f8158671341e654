"""Reductions over axes."""

from __future__ import annotations

from typing import Any

from ..ir.build import apply, apply_node
from ..ir.names import with_role
from ..ir.node import Value
from ..ir.types import Dim, Size, plain, product
from ..ops.elementwise.arithmetic import power
from .arguments import Dims, TensorLike, as_value, axes_of, axis_of, shape_error, torch_lacks
from .elementwise import abs, detach, eq, exp, log, sqrt, square, where
from .shapes import flatten, reshape

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "logsumexp",
    "max",
    "mean",
    "min",
    "norm",
    "prod",
    "std",
    "sum",
    "var",
]


def reduce(name: str, input: TensorLike, dim: Dims, keepdim: bool) -> Value:
    x = as_value(input)
    axes = axes_of(name, x, dim)
    if all(x.shape[i] == 1 for i in axes) and x.dtype.kind == "f":  # nothing to reduce: return a view
        return _dropped(x, axes, keepdim)
    return apply(name, x, axes=axes, keepdim=keepdim)


def _dropped(x: Value, axes: tuple[int, ...], keepdim: bool) -> Value:
    """x, whose extents along `axes` are 1, without these axes unless keepdim."""
    return reshape(x, tuple(d for i, d in enumerate(x.shape) if keepdim or i not in axes))


@torch_lacks(dtype=None)
def sum(input: TensorLike, dim: Dims = None, keepdim: bool = False) -> Value:
    """The sum over the axes `dim` (all by default)."""
    return reduce("sum", input, dim, keepdim)


@torch_lacks(dtype=None)
def mean(input: TensorLike, dim: Dims = None, keepdim: bool = False) -> Value:
    """The mean over the axes `dim` (all by default); over the batch axis, the divisor is n at run time."""
    x = as_value(input)
    axes = axes_of("mean", x, dim)
    if not axes:
        return x
    total = reduce("sum", x, axes, keepdim)
    return with_role(_divided(total, product(tuple(x.shape[i] for i in axes)), 0.0), "mean")


def _divided(total: Value, count: Size, less: float) -> Value:
    """total / (count - less)."""
    if isinstance(count, int) and count - less == 1:
        return total
    size: Value | float
    if isinstance(count, Dim):
        size = apply("extent", extent=count)
        size = size - less if less else size
    else:
        size = count - less
    # A scalar is divided; several elements are multiplied by the reciprocal.
    return total / size if product(total.shape) == 1 else total * with_role(as_value(1.0 / size), "inv_count")


def amax(input: TensorLike, dim: Dims = (), keepdim: bool = False) -> Value:
    """The largest element over the axes `dim` (all by default); equal elements share the gradient evenly."""
    return reduce("amax", input, dim, keepdim)


def amin(input: TensorLike, dim: Dims = (), keepdim: bool = False) -> Value:
    """The smallest element over the axes `dim` (all by default); equal elements share the gradient evenly."""
    return reduce("amin", input, dim, keepdim)


def _extreme(name: str, input: Any, dim: Any, keepdim: bool) -> Any:
    x = as_value(input)
    if dim is None:
        return reduce(f"a{name}", x, None, False)
    if isinstance(dim, Value):
        return apply(f"{name}imum", x, dim)
    axis = axis_of(name, x, dim)
    return apply_node(f"{name}_with_index", x, axes=(axis,), keepdim=keepdim).results


def max(input: TensorLike, dim: Any = None, keepdim: bool = False) -> Any:
    """The largest element; with an axis as `dim`, the pair (values, s32 indices) along it; with a value as `dim`,
    F.maximum of both, as torch.max. Without dim, equal elements share the gradient evenly."""
    return _extreme("max", input, dim, keepdim)


def min(input: TensorLike, dim: Any = None, keepdim: bool = False) -> Any:
    """The smallest element; with an axis as `dim`, the pair (values, s32 indices) along it; with a value as `dim`,
    F.minimum of both, as torch.min. Without dim, equal elements share the gradient evenly."""
    return _extreme("min", input, dim, keepdim)


def argmax(input: TensorLike, dim: int | None = None, keepdim: bool = False) -> Value:
    """The s32 index (PyTorch: int64) of the first largest element along `dim`; without dim, of the flattened input."""
    return _argument("max", input, dim, keepdim)


def argmin(input: TensorLike, dim: int | None = None, keepdim: bool = False) -> Value:
    """The s32 index (PyTorch: int64) of the first smallest element along `dim`; without dim, of the flattened input."""
    return _argument("min", input, dim, keepdim)


def _argument(name: str, input: Any, dim: int | None, keepdim: bool) -> Value:
    x = as_value(input)
    if dim is not None:
        axis = axis_of(f"arg{name}", x, dim)
        return apply_node(f"{name}_with_index", x, axes=(axis,), keepdim=keepdim).results[1]
    index = apply_node(f"{name}_with_index", flatten(x), axes=(0,), keepdim=False).results[1]
    return reshape(index, (1,) * x.ndim) if keepdim else index


@torch_lacks(dtype=None)
def prod(input: TensorLike, dim: Dims = None, keepdim: bool = False) -> Value:
    """The product over the axes `dim` (all by default). The gradient is correct where elements are 0 too; the cost of
    the gradient is quadratic in the extent of each axis."""
    x = as_value(input)
    axes = axes_of("prod", x, dim)
    y = x
    for axis in axes:
        y = reduce("prod", y, axis, True)
    return _dropped(y, axes, keepdim)


def _variance(name: str, input: Any, dim: Any, correction: float, keepdim: bool) -> Value:
    x = as_value(input)
    if isinstance(dim, bool):
        raise shape_error(name, [x], "the argument 'unbiased' is not supported; use correction=0 or 1")
    correction = plain(correction)
    if isinstance(correction, bool) or not isinstance(correction, int | float):
        raise shape_error(name, [x], f"correction={correction!r} must be a number")
    axes = axes_of(name, x, dim)
    count = product(tuple(x.shape[i] for i in axes))
    if isinstance(count, int) and count <= correction:
        raise shape_error(
            name,
            [x],
            f"{count} elements with correction={correction} give the divisor {count - correction:g}, not above 0",
        )
    total = sum(square(x - mean(x, axes, keepdim=True)), axes, keepdim)
    return _divided(total, count, float(correction))


@torch_lacks(unbiased=True)
def var(input: TensorLike, dim: Dims = None, *, correction: float = 1, keepdim: bool = False) -> Value:
    """The variance over the axes `dim` (all by default): the sum of squared deviations from the mean, divided by the
    number of elements minus `correction`."""
    return _variance("var", input, dim, correction, keepdim)


@torch_lacks(unbiased=True)
def std(input: TensorLike, dim: Dims = None, *, correction: float = 1, keepdim: bool = False) -> Value:
    """The square root of var; as in PyTorch, the gradient at 0 is 0."""
    return _root(_variance("std", input, dim, correction, keepdim))


def _root(x: Value) -> Value:
    """sqrt(x) for x >= 0 with the gradient 0 at 0; intermediate values are finite."""
    zero = eq(x, 0.0)
    return where(zero, 0.0, sqrt(where(zero, 1.0, x)))


@torch_lacks(out=None, dtype=None)
def norm(input: TensorLike, p: float | str = "fro", dim: Dims = None, keepdim: bool = False) -> Value:
    """The p-norm over the axes `dim` (all by default), for p > 0, infinity, or "fro" (2). The gradient at 0 is 0. Equal
    largest elements share the gradient of the infinity norm evenly."""
    x = as_value(input)
    axes = axes_of("norm", x, dim)
    if p in ("fro", 2):
        if all(x.shape[i] == 1 for i in axes):
            return _dropped(abs(x), axes, keepdim)
        return _root(sum(square(x), axes, keepdim))
    if p == 1:
        return sum(abs(x), axes, keepdim)
    if p == float("inf"):
        return amax(abs(x), axes, keepdim)
    p = plain(p)
    if isinstance(p, bool) or not isinstance(p, int | float) or not p > 0:
        raise shape_error("norm", [x], f'p={p!r}; known: "fro", numbers greater than 0')
    return _power(sum(_power(abs(x), float(p)), axes, keepdim), 1.0 / p)


def _power(x: Value, exponent: float) -> Value:
    """x^exponent for x >= 0 with the gradient 0 at 0; intermediate values are finite."""
    zero = eq(x, 0.0)
    return where(zero, 0.0, power(where(zero, 1.0, x), exponent))


def logsumexp(input: TensorLike, dim: Dims, keepdim: bool = False) -> Value:
    """log(sum(exp(x))) over the axes `dim`, without overflow."""
    x = as_value(input)
    axes = axes_of("logsumexp", x, dim)
    largest = detach(amax(x, axes, keepdim=True))
    # An infinite maximum is not subtracted: inf - inf is NaN. The maximum cancels in the gradient.
    shift = where(eq(abs(largest), float("inf")), 0.0, largest)
    y = log(sum(exp(x - shift), axes, keepdim))
    return y + (shift if keepdim else _dropped(shift, axes, False))
