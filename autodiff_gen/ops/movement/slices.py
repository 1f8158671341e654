"""Strided slices of a value, and values assembled from parts (concatenation, padding).

A slice has the elements starts + i * steps, with one start and one step per axis; steps may be negative. The batch axis
is taken whole, or its first element is, which always exists; that slice has no gradient.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...ir.build import apply
from ...ir.node import OptionalValues, Sample, Value, Values, Wanted, define
from ...ir.op_forms import WithLayout
from ...ir.op_kinds import Assemble, Attrs, View, ViewKind
from ...ir.types import Dim, Shape, Type
from ..support import by_operand, same_dtype


def _check_window(whole: Shape, shape: Shape, starts: Sequence[int], steps: Sequence[int]) -> None:
    if not len(whole) == len(shape) == len(starts) == len(steps):
        raise ShapeError(
            f"a window of {list(whole)} needs {len(whole)} extents, starts and steps; got {list(shape)}, "
            f"{list(starts)}, {list(steps)}"
        )
    for axis, (d, taken, start, step) in enumerate(zip(whole, shape, starts, steps, strict=True)):
        if isinstance(d, Dim) or isinstance(taken, Dim):
            if (d, 0, 1) != (taken, start, step):
                raise ShapeError(f"axis {axis} is the batch axis n, which can only be taken whole")
        elif step == 0 or taken < 1 or not (0 <= start < d and 0 <= start + (taken - 1) * step < d):
            raise ShapeError(
                f"axis {axis} of extent {d} has no {taken} elements from {start} on in steps of {step}"
            )


def _numpy_index(shape: Sequence[int], starts: Sequence[int], steps: Sequence[int]) -> tuple[Any, ...]:
    """The index of a window in NumPy."""
    parts = []
    for d, start, step in zip(shape, starts, steps, strict=True):
        stop = start + d * step
        parts.append(slice(start, None if stop < 0 else stop, step))
    return tuple(parts)


def _slice_type(x: Type, *, shape: Shape, starts: tuple[int, ...], steps: tuple[int, ...]) -> Type:
    first = (
        bool(x.shape) and isinstance(x.shape[0], Dim) and (*shape[:1], *starts[:1], *steps[:1]) == (1, 0, 1)
    )
    _check_window((1, *x.shape[1:]) if first else x.shape, shape, starts, steps)
    return Type(x.dtype, shape)


def window(x: Value, shape: Shape, starts: Sequence[int], steps: Sequence[int]) -> Value:
    """x[starts + i * steps]."""
    return apply("slice", x, shape=tuple(shape), starts=tuple(starts), steps=tuple(steps))


def _slice_gradient(dy: Value, x: Value, y: Value, attrs: Attrs) -> Value:
    starts, steps = (attrs["starts"],), (attrs["steps"],)
    return apply("assemble", dy, shape=x.type.shape, starts=starts, steps=steps, fill=0.0)


_POINTS = (
    "torch.meshgrid(*[torch.arange(d) * k + s for d, s, k in zip({shape}, {starts}, {steps})], indexing='ij')"
)

slice_ = define(
    "slice",  # y[i] = x[starts + i * steps]
    infer=_slice_type,
    ref=lambda x, *, shape, starts, steps: x[_numpy_index(shape, starts, steps)],
    vjp=by_operand(_slice_gradient),
    lower=View(lambda a, b, attrs: tuple(range(len(b))), ViewKind.WINDOW),
    samples=(
        Sample(((5,),), {"shape": (3,), "starts": (1,), "steps": (1,)}),
        Sample(((4, 6),), {"shape": (4, 2), "starts": (0, 1), "steps": (1, 3)}),
        Sample(((3, 5),), {"shape": (3, 3), "starts": (2, 4), "steps": (-1, -2)}),
        Sample(((2, 3, 4),), {"shape": (2, 1, 4), "starts": (0, 2, 0), "steps": (1, 1, 1)}),
    ),
    torch=f"a[{_POINTS.format(shape='shape', starts='starts', steps='steps')}]",
)


def _assemble_type(
    *parts: Type,
    shape: Shape,
    starts: tuple[tuple[int, ...], ...],
    steps: tuple[tuple[int, ...], ...],
    fill: float,
) -> Type:
    same_dtype(*parts)
    if not len(parts) == len(starts) == len(steps):
        raise ShapeError(f"{len(parts)} parts have {len(starts)} starts and {len(steps)} steps")
    taken = []
    for x, start, step in zip(parts, starts, steps, strict=True):
        _check_window(shape, x.shape, start, step)
        taken.append([_points(d, s, k) for d, s, k in zip(x.shape, start, step, strict=True)])
    for (i, a), (k, b) in itertools.combinations(enumerate(taken), 2):
        if not any(p.isdisjoint(q) for p, q in zip(a, b, strict=True)):
            raise ShapeError(f"parts {i} and {k} overlap")
    return Type(parts[0].dtype, shape)


def _points(extent: Any, start: int, step: int) -> frozenset[int]:
    """The indices along one axis. The batch axis counts as one index, because it is always taken whole."""
    return frozenset([0] if isinstance(extent, Dim) else range(start, start + extent * step, step))


def _assemble(*parts: Any, shape: Any, starts: Any, steps: Any, fill: float) -> Any:
    y = np.full(shape, fill, dtype=parts[0].dtype)
    for x, start, step in zip(parts, starts, steps, strict=True):
        y[_numpy_index(x.shape, start, step)] = x
    return y


def _assemble_vjp(
    dys: OptionalValues, inputs: Values, outs: Values, attrs: Attrs, wanted: Wanted
) -> OptionalValues:
    (dy,) = dys
    assert dy is not None
    windows = zip(inputs, attrs["starts"], attrs["steps"], wanted, strict=True)
    return [window(dy, x.type.shape, start, step) if want else None for x, start, step, want in windows]


assemble = define(
    "assemble",  # y[starts[k] + i * steps[k]] = operand k, the fill elsewhere
    infer=_assemble_type,
    ref=_assemble,
    vjp=_assemble_vjp,
    lower=Assemble(),
    samples=(
        Sample(((3,),), {"shape": (7,), "starts": ((1,),), "steps": ((2,),), "fill": 0.5}),
        Sample(
            ((2, 3), (2, 1), (2, 2)),
            {"shape": (2, 6), "starts": ((0, 0), (0, 3), (0, 4)), "steps": ((1, 1),) * 3, "fill": 0.0},
        ),
        Sample(
            ((2, 2), (1, 3)),
            {"shape": (3, 4), "starts": ((2, 3), (0, 0)), "steps": ((-1, -1), (1, 1)), "fill": -1.0},
        ),
        Sample(
            ((2, 3), (2, 3)),
            {"shape": (2, 6), "starts": ((0, 0), (0, 1)), "steps": ((1, 2),) * 2, "fill": 0.0},
        ),
    ),
    torch="__import__('functools').reduce(lambda y, p: y.index_put("
    + _POINTS.format(shape="p[0].shape", starts="p[1]", steps="p[2]")
    + ", p[0]), zip(operands, starts, steps), torch.full(shape, fill, dtype=a.dtype))",
)

assemble_placed = define(
    "assemble_placed",  # an assembled value that is stored with `layout`; created for scans
    infer=lambda *parts, layout, of, **windows: _assemble_type(*parts, **windows),
    ref=lambda *parts, layout, of, **windows: _assemble(*parts, **windows),
    vjp=None,
    lower=Assemble(),
    form=WithLayout("assemble"),
)
