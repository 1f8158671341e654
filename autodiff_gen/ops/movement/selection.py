"""Selection of one element of the last axis by an index."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ShapeError
from ...ir.build import apply
from ...ir.node import Sample, Value, define
from ...ir.op_kinds import Attrs, Pick
from ...ir.types import Shape, Type
from ..support import as_s32, by_operand


def _pick_type(x: Type, index: Type) -> Type:
    if index.dtype.kind not in "iu":
        raise ShapeError(f"the index must be of an integer dtype, not {index.dtype}")
    if not x.shape or x.shape[:-1] != index.shape:
        raise ShapeError(
            f"the index must have the first operand's shape less its last axis, {list(x.shape[:-1])}"
        )
    return Type(x.dtype, index.shape)


def _pick_axes(x: Shape, index: Shape, attrs: Attrs) -> tuple[tuple[int | None, ...], tuple[int, ...]]:
    axes = tuple(range(len(index)))
    return (*axes, None), axes


def _pick(x: Any, index: Any) -> Any:
    return np.take_along_axis(x, np.asarray(index, dtype=np.intp)[..., None], axis=-1)[..., 0]


def _pick_gradient(dy: Value, x: Value, index: Value, y: Value, attrs: Attrs) -> Value:
    column = (*index.type.shape, 1)
    index_column = apply("reshape", as_s32(index), shape=column)
    chosen = apply("eq", apply("iota", size=x.type.shape[-1]), index_column)
    return apply("where", chosen, apply("reshape", dy, shape=column), 0.0)


pick = define(
    "pick",  # y[...] = x[..., index[...]]
    infer=_pick_type,
    ref=_pick,
    vjp=by_operand(_pick_gradient, None),
    lower=Pick(_pick_axes),
    samples=(
        Sample(((3, 4), (3,)), dtypes={1: "s32"}, high=4),
        Sample(((3, 4), (3,)), dtypes={1: "u8"}, high=4),
        Sample(((2, 3, 2), (2, 3)), dtypes={1: "s32"}, high=2),
        Sample(((5,), ()), dtypes={1: "s32"}, high=5),
        Sample(((1, 1), (1,)), dtypes={1: "u8"}, high=1),
    ),
    torch="torch.gather(a, -1, b.long().unsqueeze(-1)).squeeze(-1)",
)
