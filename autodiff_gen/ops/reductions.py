"""Reductions over axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..dtypes import Shape, Type, normalise_axes
from ..ir import Value, apply
from ..op import Attrs, Op, Reduce, Sample, register


def reduced(x: Shape, axes: Sequence[int], keepdim: bool) -> Shape:
    if keepdim:
        return tuple(1 if i in axes else d for i, d in enumerate(x))
    return tuple(d for i, d in enumerate(x) if i not in axes)


def _reduce_type(x: Type, *, axes: tuple[int, ...], keepdim: bool) -> Type:
    axes = normalise_axes(axes, len(x.shape))
    return Type(x.dtype, reduced(x.shape, axes, keepdim))


def expanded(v: Value, x: Value, attrs: Attrs) -> Value:
    """A reduction's result or gradient, stretched back over the axes of x that it lost."""
    axes = normalise_axes(attrs["axes"], len(x.type.shape))
    v = apply("reshape", v, shape=reduced(x.type.shape, axes, True))
    return apply("broadcast_to", v, shape=x.type.shape)


sum_ = register(
    Op(
        "sum",  # in ascending index order
        infer=_reduce_type,
        ref=lambda x, *, axes, keepdim: np.sum(x, axis=tuple(axes), keepdims=keepdim, dtype=x.dtype),
        vjp=lambda dys, ins, outs, attrs, wanted: [expanded(dys[0], ins[0], attrs)],
        lower=Reduce(("0.0f",), "{acc0} += {x};"),
        samples=(
            Sample(((3, 4),), {"axes": (1,), "keepdim": False}),
            Sample(((3, 4),), {"axes": (0,), "keepdim": True}),
            Sample(((2, 3, 4),), {"axes": (0, 2), "keepdim": False}),
            Sample(((2, 3, 4),), {"axes": (0, 1, 2), "keepdim": False}),
            Sample(((1, 1),), {"axes": (1,), "keepdim": False}),
        ),
        torch="torch.sum(a, dim=axes, keepdim=keepdim)",
    )
)
