"""Reductions over axes."""

from __future__ import annotations

from typing import Any

from ..dtypes import Dim, product
from ..ir import Value, apply, apply_node
from .arguments import Dims, as_value, axes_of, axis_of, torch_lacks
from .shapes import reshape


def reduce(name: str, input: Any, dim: Dims, keepdim: bool) -> Value:
    x = as_value(input)
    axes = axes_of(name, x, dim)
    if all(x.shape[i] == 1 for i in axes) and x.dtype.kind == "f":  # nothing to reduce: a view will do
        return reshape(x, tuple(d for i, d in enumerate(x.shape) if keepdim or i not in axes))
    return apply(name, x, axes=axes, keepdim=keepdim)


@torch_lacks(dtype=None)
def sum(input: Any, dim: Dims = None, keepdim: bool = False) -> Value:
    """The sum over the axes `dim` (all by default)."""
    return reduce("sum", input, dim, keepdim)


@torch_lacks(dtype=None)
def mean(input: Any, dim: Dims = None, keepdim: bool = False) -> Value:
    """The mean over the axes `dim` (all by default); over the batch axis, that of the samples given at run
    time."""
    x = as_value(input)
    axes = axes_of("mean", x, dim)
    total = reduce("sum", x, axes, keepdim) if axes else x
    count = product(tuple(x.shape[i] for i in axes))
    if isinstance(count, int) and count == 1:
        return total
    size = apply("extent", extent=count) if isinstance(count, Dim) else float(count)
    # One division for a scalar; many elements are multiplied by one reciprocal.
    return total / size if product(total.shape) == 1 else total * (1.0 / size)


def amax(input: Any, dim: Dims = (), keepdim: bool = False) -> Value:
    """The greatest element over the axes `dim` (all by default); ties share the gradient evenly."""
    return reduce("amax", input, dim, keepdim)


def amin(input: Any, dim: Dims = (), keepdim: bool = False) -> Value:
    """The smallest element over the axes `dim` (all by default); ties share the gradient evenly."""
    return reduce("amin", input, dim, keepdim)


def _extreme(name: str, input: Any, dim: Any, keepdim: bool) -> Any:
    x = as_value(input)
    if dim is None:
        return reduce(f"a{name}", x, None, False)
    if isinstance(dim, Value):
        return apply(f"{name}imum", x, dim)
    axis = axis_of(name, x, dim)
    return apply_node(f"{name}_with_index", x, axes=(axis,), keepdim=keepdim).results


def max(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The greatest element; with `dim`, the pair (values, s32 indices) along that axis; with a value as
    `dim`, maximum of two values."""
    return _extreme("max", input, dim, keepdim)


def min(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The smallest element; with `dim`, the pair (values, s32 indices) along that axis; with a value as
    `dim`, minimum of two values."""
    return _extreme("min", input, dim, keepdim)
