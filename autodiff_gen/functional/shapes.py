"""Views of the same elements with another shape."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from ..errors import ShapeError
from ..ir.build import apply
from ..ir.node import Value
from ..ir.types import Dim, Shape, Size, plain, product
from .arguments import Dims, TensorLike, as_value, axes_of, axis_of, list_of, shape_error

__all__ = ["broadcast_to", "flatten", "permute", "reshape", "squeeze", "transpose", "unflatten", "unsqueeze"]


def reshape(input: TensorLike, shape: Sequence[Size] | Size) -> Value:
    """The same elements, in row-major order, with another shape; one extent may be -1. Give the batch axis as
    x.shape[0], as -1, or as the number of samples of the largest batch. A view, except that floats are copied between
    [2, n, d] and [2 n, d], where n is the batch."""
    x = as_value(input)
    wanted: Shape = tuple(map(plain, (shape,) if isinstance(shape, int | Dim) else shape))
    if not all(isinstance(d, int | Dim) for d in wanted):
        raise shape_error("reshape", [x], f"the shape {list(wanted)} must be made of integers")
    try:
        return _reshaped(x, wanted)
    except ShapeError:
        for new in _with_batch(x, wanted):
            with contextlib.suppress(ShapeError):
                return _reshaped(x, new)
        with contextlib.suppress(ShapeError):
            return _regrouped(x, _resolved(x, wanted))
        raise


def _reshaped(x: Value, wanted: Shape) -> Value:
    wanted = _resolved(x, wanted)
    return x if wanted == x.shape else apply("reshape", x, shape=wanted)


def _resolved(x: Value, wanted: Shape) -> Shape:
    """The shape with a number instead of -1."""
    if sum(1 for d in wanted if d == -1) > 1:
        raise shape_error("reshape", [x], f"only one extent of {list(wanted)} may be -1")
    if -1 in wanted:
        rest = product(tuple(d for d in wanted if d != -1))
        wanted = tuple(_quotient(x, wanted, product(x.shape), rest) if d == -1 else d for d in wanted)
    return wanted


def groups_of_batch(x: Value, groups: int) -> Value:
    """[g c n, ...] as g groups, [g, c n, ...]; a copy if there are several."""
    shape = (groups, x.shape[0] // groups, *x.shape[1:])
    return apply("regroup" if groups > 1 else "reshape", x, shape=shape)


def merged_groups(x: Value) -> Value:
    """[g, c n, ...] as [g c n, ...]; a copy if there are several groups."""
    shape = (x.shape[0] * x.shape[1], *x.shape[2:])
    return apply("regroup" if x.shape[0] != 1 else "reshape", x, shape=shape)


def _regrouped(x: Value, wanted: Shape) -> Value:
    """A reshape that copies, because the rows of the batch are in groups before or after it."""

    def grouped(shape: Shape) -> tuple[int, Size, Size]:
        """The groups, the extent that follows the batch, and the elements of a row. Raises ShapeError."""
        axes = [k for k, d in enumerate(shape) if isinstance(d, Dim)]
        if len(axes) != 1:
            raise ShapeError(f"{list(shape)} has no batch axis, or several")
        groups = product(shape[: axes[0]])
        assert isinstance(groups, int)
        return groups, shape[axes[0]], product(shape[axes[0] + 1 :])

    y = merged_groups(apply("reshape", x, shape=grouped(x.shape)))
    groups, extent, row = grouped(wanted)
    y = groups_of_batch(apply("reshape", y, shape=(groups * extent, row)), groups)
    return apply("reshape", y, shape=wanted)


def _with_batch(x: Value, wanted: Shape) -> Iterator[Shape]:
    """Candidates for `wanted`: each has one extent that was a multiple of the largest batch, and now follows the
    batch."""
    caps = {d.cap for d in x.shape if isinstance(d, Dim)}
    for k, d in enumerate(wanted):
        for cap in caps:
            if isinstance(d, int) and d > 0 and d % cap == 0:
                yield (*wanted[:k], Dim(d // cap, cap), *wanted[k + 1 :])


def _quotient(x: Value, wanted: Shape, total: Size, rest: Size) -> Size:
    """The number for -1 in `wanted`. Raises ShapeError if there is none."""
    if isinstance(rest, Dim):
        if isinstance(total, Dim) and total.power == rest.power and total.coef % rest.coef == 0:
            return total.coef // rest.coef
    elif rest > 0 and (total.coef if isinstance(total, Dim) else total) % rest == 0:
        return total // rest
    raise shape_error("reshape", [x], f"{total} elements do not fill the shape {list(wanted)}")


def flatten(input: TensorLike, start_dim: int = 0, end_dim: int = -1) -> Value:
    """Axes start_dim to end_dim (inclusive) merged into one: [2, 3, 4] -> [24] by default."""
    x = as_value(input)
    if x.ndim == 0:
        return reshape(x, (1,))
    first, last = axis_of("flatten", x, start_dim), axis_of("flatten", x, end_dim)
    if first > last:
        raise shape_error("flatten", [x], f"start_dim={start_dim} comes after end_dim={end_dim}")
    return reshape(x, (*x.shape[:first], product(x.shape[first : last + 1]), *x.shape[last + 1 :]))


def unflatten(input: TensorLike, dim: int, sizes: Sequence[int]) -> Value:
    """The axis `dim` split into axes with the extents `sizes`; one may be -1."""
    x = as_value(input)
    axis = axis_of("unflatten", x, dim)
    inner: Shape = list_of("unflatten", x, "sizes", sizes)
    d = x.shape[axis]
    if sum(1 for s in inner if s == -1) > 1 or (isinstance(d, Dim) and -1 not in inner):
        raise shape_error(
            "unflatten", [x], f"sizes={list(inner)}: one extent may be -1; the batch axis must be"
        )
    if -1 in inner:
        rest = product(tuple(s for s in inner if s != -1))
        inner = tuple(_quotient(x, inner, d, rest) if s == -1 else s for s in inner)
    if product(inner) != d:
        raise shape_error(
            "unflatten", [x], f"sizes={list(inner)} do not multiply to extent {d} of axis {axis}"
        )
    return reshape(x, (*x.shape[:axis], *inner, *x.shape[axis + 1 :]))


def squeeze(input: TensorLike, dim: Dims = None) -> Value:
    """input without its axes of extent 1 (only those in `dim`, if given)."""
    x = as_value(input)
    axes = axes_of("squeeze", x, dim)
    return reshape(x, tuple(d for i, d in enumerate(x.shape) if not (i in axes and d == 1)))


def unsqueeze(input: TensorLike, dim: int) -> Value:
    """input with an axis of extent 1 inserted at `dim`."""
    x = as_value(input)
    (dim,) = list_of("unsqueeze", x, "dim", dim)
    if not -x.ndim - 1 <= dim <= x.ndim:
        raise shape_error("unsqueeze", [x], f"dim={dim} is out of range")
    position = dim % (x.ndim + 1)
    return reshape(x, (*x.shape[:position], 1, *x.shape[position:]))


def permute(input: TensorLike, dims: Sequence[int]) -> Value:
    """Axis i of the result is axis dims[i] of the input; a view."""
    x = as_value(input)
    wanted = list_of("permute", x, "dims", dims)
    return apply("permute", x, dims=tuple(d % x.ndim if -x.ndim <= d < x.ndim else d for d in wanted))


def transpose(input: TensorLike, dim0: int, dim1: int) -> Value:
    """Two axes swapped; a view."""
    x = as_value(input)
    a, b = axis_of("transpose", x, dim0), axis_of("transpose", x, dim1)
    order = list(range(x.ndim))
    order[a], order[b] = b, a
    return apply("permute", x, dims=tuple(order))


def broadcast_to(input: TensorLike, shape: Sequence[Size]) -> Value:
    """The input broadcast to a shape, as in NumPy; a view."""
    x = as_value(input)
    wanted = list_of("broadcast_to", x, "shape", shape)
    return x if x.shape == wanted else apply("broadcast_to", x, shape=wanted)
