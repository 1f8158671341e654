"""Values without operands: numbers in order, and values whose elements are equal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir.build import apply, constant
from ..ir.node import Value
from ..ir.types import Dim, DType, Size, plain
from ..ir.types import dtype as dtype_of
from .arguments import TensorLike, as_value, torch_lacks
from .elementwise import eq, to
from .shapes import broadcast_to, reshape

__all__ = ["arange", "eye", "full", "full_like", "linspace", "ones", "ones_like", "zeros", "zeros_like"]


@torch_lacks(out=None, layout=None, device=None, requires_grad=False)
def arange(
    start: Any, end: TensorLike | None = None, step: Any = 1, *, dtype: str | DType | None = None
) -> Value:
    """start, start + step, ... up to but without `end`; arange(n) is 0 to n - 1, where n may be the batch, x.shape[0].
    s32 (PyTorch: int64) if all arguments are integers, otherwise f32."""
    first, last = (0, start) if end is None else (start, end)
    first, last, step = plain(first), plain(last), plain(step)
    if isinstance(last, Dim):
        if (first, step) != (0, 1):
            raise ShapeError(f"arange: of the batch {last}, start must be 0 and step 1")
        y = apply("iota", size=last)
    else:
        numbers = (first, last, step)
        if any(isinstance(k, bool) or not isinstance(k, int | float) for k in numbers) or step == 0:
            raise ShapeError(f"arange: start, end and step must be numbers, step not 0; got {numbers}")
        count = math.ceil((last - first) / step)
        if count < 1:
            raise ShapeError(f"arange: there is no number from {first} to {last} in steps of {step}")
        if all(isinstance(k, int) for k in numbers):
            y = apply("iota", size=count)
            y = y if step == 1 else y * step
            y = y + first if first else y
        else:
            y = constant(np.asarray(first + np.arange(count) * step, np.float32))
    return y if dtype is None else to(y, dtype)


@torch_lacks(out=None, dtype=None, layout=None, device=None, requires_grad=False)
def linspace(start: float, end: float, steps: int) -> Value:
    """f32[steps]: numbers from start to end, both included, at equal distances."""
    return constant(np.linspace(plain(start), plain(end), steps, dtype=np.float32))


@torch_lacks(out=None, layout=None, device=None, requires_grad=False)
def eye(n: Size, m: Size | None = None, *, dtype: str | DType = "f32") -> Value:
    """The matrix [n, m] (square by default) with 1 on its diagonal, 0 elsewhere; n may be the batch, x.shape[0]."""
    rows, columns = plain(n), plain(n if m is None else m)
    diagonal = eq(
        reshape(apply("iota", size=rows), (rows, 1)), reshape(apply("iota", size=columns), (1, columns))
    )
    return to(diagonal, dtype)


@torch_lacks(out=None, layout=None, device=None, requires_grad=False)
def full(size: Size | Sequence[Size], fill_value: TensorLike, *, dtype: str | DType | None = None) -> Value:
    """A value of the shape `size` whose elements are all the number fill_value; f32 unless `dtype` is given, while
    PyTorch derives the dtype from the number."""
    value = as_value(fill_value)
    shape = (size,) if isinstance(size, int | Dim) else tuple(size)
    return broadcast_to(value if dtype is None else constant(fill_value, dtype_of(dtype)), shape)


def _filled(size: tuple[Any, ...], number: float, dtype: str | DType) -> Value:
    shape = size if len(size) != 1 or isinstance(size[0], int | Dim) else tuple(size[0])
    return full(shape, number, dtype=dtype)


@torch_lacks(out=None, layout=None, device=None, requires_grad=False)
def zeros(*size: Any, dtype: str | DType = "f32") -> Value:
    """A value of the shape `size` of zeros."""
    return _filled(size, 0.0, dtype)


@torch_lacks(out=None, layout=None, device=None, requires_grad=False)
def ones(*size: Any, dtype: str | DType = "f32") -> Value:
    """A value of the shape `size` of ones."""
    return _filled(size, 1.0, dtype)


@torch_lacks(layout=None, device=None, requires_grad=False, memory_format=None)
def full_like(input: TensorLike, fill_value: TensorLike, *, dtype: str | DType | None = None) -> Value:
    """full with the input's shape and dtype."""
    x = as_value(input)
    return full(x.shape, fill_value, dtype=x.dtype if dtype is None else dtype)


@torch_lacks(layout=None, device=None, requires_grad=False, memory_format=None)
def zeros_like(input: TensorLike, *, dtype: str | DType | None = None) -> Value:
    """Zeros of the input's shape and dtype."""
    return full_like(input, 0, dtype=dtype)


@torch_lacks(layout=None, device=None, requires_grad=False, memory_format=None)
def ones_like(input: TensorLike, *, dtype: str | DType | None = None) -> Value:
    """Ones of the input's shape and dtype."""
    return full_like(input, 1, dtype=dtype)
