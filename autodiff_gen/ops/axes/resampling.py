"""Resampling along an axis: a new element is a weighted sum of old elements at indices that are known at build time."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ...ir.build import apply, constant
from ...ir.node import Sample, Value, Values, define
from ...ir.op_kinds import Attrs, Composite
from ...ir.types import Type
from ..support import by_operand, floating

_FORMULA = 2  # up to this number of terms, the sum is a formula; more terms are added up in a loop


def _type(x: Type, *, axes: tuple[int, ...], index: Any, weights: Any) -> Type:
    floating(x)
    (axis,) = axes
    return Type(x.dtype, (*x.shape[:axis], len(index), *x.shape[axis + 1 :]))


def _along(weights: Any, axis: int, rank: int) -> Any:
    """weights[j, ...] with axes of extent 1 appended, so that they broadcast to a value with j along an axis."""
    return weights.reshape(*weights.shape, *(1,) * (rank - axis - 1))


def _ref(x: Any, *, axes: tuple[int, ...], index: Any, weights: Any) -> Any:
    (axis,) = axes
    terms = np.take(x, index, axis=axis) * _along(weights.astype(x.dtype), axis, x.ndim)
    return terms.sum(axis=axis + 1)


def _term(x: Value, axis: int, index: Any, weights: Any) -> Value:
    """The elements of x at the indices, each times its weight."""
    part = apply("index_select", x, constant(index.astype(np.int32), role="places"), dim=axis)
    return (
        part
        if (weights == 1.0).all()
        else part * constant(_along(weights, axis, x.ndim), x.dtype, role="factors")
    )


def _expanded(operands: Values, attrs: Attrs) -> tuple[Value, ...]:
    (x,), (axis,), index, weights = operands, attrs["axes"], attrs["index"], attrs["weights"]
    if index.shape[1] > _FORMULA:
        return (apply("sum", _term(x, axis, index, weights), axes=(axis + 1,), keepdim=False),)
    terms = [_term(x, axis, i, w) for i, w in zip(index.T, weights.T, strict=True)]
    return (functools.reduce(lambda a, b: apply("add", a, b), terms),)


def adjoint(index: Any, weights: Any, size: int) -> tuple[Any, Any]:
    """Index and weights of the gradient: row i has the new elements to which old element i contributes. All rows get
    the length of the longest; the added entries have the weight 0."""
    found: list[dict[int, float]] = [{} for _ in range(size)]
    for j, row in enumerate(zip(index, weights, strict=True)):
        for i, weight in zip(*row, strict=True):
            if weight != 0.0:
                found[i][j] = found[i].get(j, 0.0) + weight
    terms = max(1, *map(len, found))
    places = [[*of, *[next(iter(of), 0)] * (terms - len(of))] for of in found]
    factors = [[*of.values(), *[0.0] * (terms - len(of))] for of in found]
    return np.array(places), np.array(factors, weights.dtype)


def _gradient(dy: Value, x: Value, y: Value, attrs: Attrs) -> Value:
    (axis,) = attrs["axes"]
    size = x.type.shape[axis]
    assert isinstance(size, int)
    index, weights = adjoint(attrs["index"], attrs["weights"], size)
    return apply("resample", dy, axes=(axis,), index=index, weights=weights)


def _taps(*rows: tuple[tuple[int, float], ...]) -> dict[str, Any]:
    return {
        "index": np.array([[i for i, _ in row] for row in rows]),
        "weights": np.array([[w for _, w in row] for row in rows], np.float32),
    }


resample = define(
    # y[i, j, k] = the sum over m of weights[j, m] x[i, index[j, m], k] for axes=(1,)
    "resample",
    infer=_type,
    ref=_ref,
    vjp=by_operand(_gradient),
    lower=Composite(_expanded),
    samples=(
        Sample(
            ((2, 3, 2),),
            {"axes": (1,), **_taps(((0, 1.0), (0, 0.0)), ((0, 0.5), (1, 0.5)), ((2, 0.25), (2, 0.5)))},
        ),
        Sample(((4,),), {"axes": (0,), **_taps(((1, 1.0),), ((3, 1.0),))}),
        Sample(((2, 4),), {"axes": (1,), **_taps(((0, 0.25), (3, 0.5), (1, -1.0)))}),
        Sample(((3, 1),), {"axes": (0,), **_taps(((0, 0.5), (1, 0.5)), ((1, 0.5), (2, 0.5)))}),
    ),
    torch="(a.movedim(axes[0], -1)[..., torch.tensor(index)] * torch.tensor(weights).to(a.dtype)).sum(-1)"
    ".movedim(-1, axes[0])",
)
