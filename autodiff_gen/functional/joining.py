"""Concatenation, padding, rolling and repetition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import ShapeError
from ..ir.build import apply
from ..ir.node import Value
from ..ir.types import Dim, plain, product
from .arguments import Dims, TensorLike, as_value, axis_of, list_of, shape_error, torch_lacks
from .elementwise import to
from .shapes import broadcast_to, flatten, merged_groups, reshape, unsqueeze
from .slicing import cut, extent_of, flip, in_groups, whole
from .windows import applied

__all__ = ["cat", "expand", "pad", "repeat", "repeat_interleave", "roll", "stack", "tile"]


def _list(name: str, tensors: Any) -> list[Value]:
    if isinstance(tensors, Value) or not isinstance(tensors, Sequence) or not tensors:
        raise ShapeError(f"{name}: needs a list of values")
    return [as_value(v) for v in tensors]


def cat(tensors: Sequence[Any], dim: int = 0) -> Value:
    """The concatenation of values along `dim`; their other extents must be the same. Along a batch axis, all values
    must follow the batch, and be floats or integers of one byte."""
    values = _list("cat", tensors)
    axis = axis_of("cat", values[0], dim)
    for v in values:
        if v.ndim != values[0].ndim or any(
            a != b for i, (a, b) in enumerate(zip(v.shape, values[0].shape, strict=True)) if i != axis
        ):
            raise shape_error("cat", values, f"all extents except along axis {axis} must be the same")
    if len(values) == 1:
        return values[0]
    if all(isinstance(v.shape[axis], Dim) for v in values):
        return _joined_batches(values, axis)
    sizes = [extent_of("cat", v, axis) for v in values]
    rank = values[0].ndim
    starts = tuple(tuple(sum(sizes[:k]) if i == axis else 0 for i in range(rank)) for k in range(len(sizes)))
    shape = tuple(sum(sizes) if i == axis else d for i, d in enumerate(values[0].shape))
    attrs = {"shape": shape, "starts": starts, "steps": ((1,) * rank,) * len(sizes), "fill": 0.0}
    return applied("cat", values, "assemble", *values, **attrs).results[0]


def _joined_batches(values: Sequence[Value], axis: int) -> Value:
    """The concatenation along an axis that follows the batch; integers of one byte are joined as floats, exactly."""
    dtype = values[0].dtype
    if dtype.size == 1 and all(v.dtype is dtype for v in values):
        return to(_joined_batches([to(v, "f32") for v in values], axis), dtype)
    joined = merged_groups(cat([in_groups("cat", v, axis) for v in values], 0))
    return reshape(joined, (*values[0].shape[:axis], *joined.shape))


def stack(tensors: Sequence[Any], dim: int = 0) -> Value:
    """Values of one shape stacked along a new axis `dim`."""
    values = _list("stack", tensors)
    if any(v.shape != values[0].shape for v in values):
        raise shape_error("stack", values, "all shapes must be the same")
    return cat([unsqueeze(v, dim) for v in values], dim if dim >= 0 else dim + values[0].ndim + 1)


def pad(input: TensorLike, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Value:
    """Add elements before and after the axes: `pad` has two numbers for the last axis, then two for the axis before it,
    and so on, as torch.nn.functional.pad.

    Modes: "constant" (`value`, 0 by default; negative numbers crop), "reflect" (mirrored about the border element,
    which is not repeated), "replicate" (the border element), "circular" (elements from the other end).
    """
    x = as_value(input)
    if mode not in ("constant", "reflect", "replicate", "circular"):
        raise ShapeError(f'pad: mode={mode!r}; known: "constant", "reflect", "replicate", "circular"')
    numbers = [whole("pad", x, "pad", p) for p in list_of("pad", x, "pad", pad)]
    if len(numbers) % 2 or len(numbers) > 2 * x.ndim:
        raise shape_error(
            "pad", [x], f"pad={numbers} must have two numbers for each of at most {x.ndim} axes"
        )
    if mode != "constant" and value:
        raise shape_error("pad", [x], f'value={value} is for mode="constant" only')
    sides = {x.ndim - 1 - k: (numbers[2 * k], numbers[2 * k + 1]) for k in range(len(numbers) // 2)}
    sides = {axis: both for axis, both in sides.items() if both != (0, 0)}
    if mode == "constant":
        return _pad_constant(x, sides, 0.0 if value is None else float(value))
    for axis, (before, after) in sorted(sides.items()):
        x = _pad_copies(x, axis, before, after, mode)
    return x


def _pad_constant(x: Value, sides: dict[int, tuple[int, int]], fill: float) -> Value:
    shape = list(x.shape)
    starts = [0] * x.ndim
    for axis, (before, after) in sides.items():
        d = extent_of("pad", x, axis)
        first, last = max(0, -before), d - max(0, -after)
        if before + d + after < 1 or last <= first:
            raise shape_error("pad", [x], f"({before}, {after}) removes all of axis {axis} of extent {d}")
        x = cut(x, axis, first, last - first)
        shape[axis], starts[axis] = before + d + after, max(0, before)
    if tuple(shape) == x.shape:
        return x
    steps = ((1,) * x.ndim,)
    return apply("assemble", x, shape=tuple(shape), starts=(tuple(starts),), steps=steps, fill=fill)


def _pad_copies(x: Value, axis: int, before: int, after: int, mode: str) -> Value:
    d = extent_of("pad", x, axis)
    most = {"reflect": d - 1, "circular": d}.get(mode)
    if min(before, after) < 0:
        raise shape_error("pad", [x], f'({before}, {after}): only mode="constant" can crop')
    if most is not None and max(before, after) > most:
        raise shape_error("pad", [x], f"({before}, {after}): mode={mode!r} adds at most {most} to extent {d}")

    def border(size: int, start: int) -> list[Value]:
        if size == 0:
            return []
        if mode != "replicate":
            part = cut(x, axis, start, size)
            return [flip(part, axis) if mode == "reflect" else part]
        shape = tuple(size if i == axis else e for i, e in enumerate(x.shape))
        return [broadcast_to(cut(x, axis, start, 1), shape)]

    first = {"reflect": 1, "replicate": 0, "circular": d - before}[mode]
    last = {"reflect": d - 1 - after, "replicate": d - 1, "circular": 0}[mode]
    return cat([*border(before, first), x, *border(after, last)], axis)


def roll(input: TensorLike, shifts: int | Sequence[int], dims: Dims = None) -> Value:
    """The elements shifted cyclically by `shifts` along `dims`; without dims, all elements in row-major order."""
    x = as_value(input)
    if dims is None:
        return reshape(roll(flatten(x), shifts, 0), x.shape)
    moves = [shifts] if not isinstance(shifts, Sequence) else list(shifts)
    axes = [dims] if isinstance(dims, int) else list(dims)
    if len(moves) != len(axes):
        raise shape_error("roll", [x], f"{len(moves)} shifts for {len(axes)} dims")
    for move, dim in zip(moves, axes, strict=True):
        axis = axis_of("roll", x, dim)
        d = extent_of("roll", x, axis)
        k = whole("roll", x, "shifts", move) % d
        x = cat([cut(x, axis, d - k, k), cut(x, axis, 0, d - k)], axis) if k else x
    return x


def expand(input: TensorLike, sizes: Sequence[int]) -> Value:
    """Axes of extent 1 broadcast to `sizes`, and new axes in front; -1 keeps an extent. A view."""
    x = as_value(input)
    sizes = list_of("expand", x, "sizes", sizes)
    added = len(sizes) - x.ndim
    if added < 0 or any(d == -1 for d in sizes[:added]):
        raise shape_error(
            "expand", [x], f"sizes={list(sizes)} must name all {x.ndim} axes; -1 keeps an extent"
        )
    return broadcast_to(x, tuple(x.shape[i - added] if d == -1 else d for i, d in enumerate(sizes)))


def repeat(input: TensorLike, sizes: Sequence[int]) -> Value:
    """The value repeated sizes[i] times along axis i of the result, as Tensor.repeat; additional axes come first."""
    return _repeated("repeat", as_value(input), sizes)


def tile(input: TensorLike, dims: Sequence[int]) -> Value:
    """repeat, as torch.tile: if there are fewer numbers than axes, they belong to the last axes."""
    x = as_value(input)
    wanted = list_of("tile", x, "dims", dims)
    return _repeated("tile", x, (*(1,) * (x.ndim - len(wanted)), *wanted))


def _repeated(name: str, x: Value, sizes: Sequence[int]) -> Value:
    times = [whole(name, x, "sizes", s) for s in list_of(name, x, "sizes", sizes)]
    if min(times, default=1) < 1 or len(times) < x.ndim:
        raise shape_error(name, [x], f"{times} must have a number of at least 1 for each axis")
    shape = (*(1,) * (len(times) - x.ndim), *x.shape)
    for axis, k in enumerate(times):
        if k > 1 and isinstance(shape[axis], Dim):
            raise shape_error(name, [x], f"axis {axis} is the batch axis, which cannot be repeated")
    split = tuple(e for k, d in zip(times, shape, strict=True) for e in (1, d))
    repeated = tuple(e for k, d in zip(times, shape, strict=True) for e in (k, d))
    merged = tuple(d * k for k, d in zip(times, shape, strict=True))
    return reshape(broadcast_to(reshape(x, split), repeated), merged)


@torch_lacks(output_size=None)
def repeat_interleave(input: TensorLike, repeats: int, dim: int | None = None) -> Value:
    """Each element repeated `repeats` times along `dim`; without dim, along the flattened input."""
    x = as_value(input)
    name = "repeat_interleave"
    repeats = plain(repeats)
    if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < 1:
        raise shape_error(name, [x], f"repeats={repeats!r} must be one integer of at least 1")
    if dim is None:
        x, dim = flatten(x), 0
    axis = axis_of(name, x, dim)
    left, right = x.shape[: axis + 1], x.shape[axis + 1 :]
    repeated = broadcast_to(reshape(x, (*left, 1, *right)), (*left, repeats, *right))
    return reshape(repeated, (*left[:-1], product((left[-1], repeats)), *right))
