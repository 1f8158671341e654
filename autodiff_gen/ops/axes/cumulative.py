"""Cumulative sums along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...ir.build import apply
from ...ir.kernel_call import KernelCall, Operand, Result
from ...ir.node import Sample, Value, define
from ...ir.op_kinds import Attrs, KernelOp, Tile
from ...ir.strides import Strided
from ...ir.types import Type
from ..movement.indexing import blocks
from ..support import by_operand, check_float


def _type(x: Type, *, dim: int, reverse: bool) -> Type:
    check_float(x)
    if not 0 <= dim < len(x.shape):
        raise ShapeError(f"dim={dim} is out of range for {len(x.shape)} axes")
    blocks(x.shape, dim)
    return x


def _cumsum(x: Any, *, dim: int, reverse: bool) -> Any:
    return np.flip(np.cumsum(np.flip(x, dim), dim), dim) if reverse else np.cumsum(x, dim)


def _gradient(dy: Value, x: Value, y: Value, attrs: Attrs) -> Value:
    return apply("cumsum", dy, dim=attrs["dim"], reverse=not attrs["reverse"])


def _call(layouts: Sequence[Strided], results: Sequence[Type], attrs: Attrs) -> KernelCall:
    outer, count, inner = blocks(layouts[0].shape, attrs["dim"])
    sizes = {"outer": outer, "count": count, "inner": inner, "reverse": int(attrs["reverse"])}
    return KernelCall("cumsum_f32", {"x": Operand(0), "y": Result()}, sizes)


cumsum = define(
    "cumsum",  # y[i, j, k] = the sum of x[i, 0..j, k] for dim=1, or of x[i, j.., k] in reverse
    infer=_type,
    ref=_cumsum,
    vjp=by_operand(_gradient),
    lower=KernelOp(_call, tile=lambda at, shapes, attrs: Tile({0: at}) if at.axis != attrs["dim"] else None),
    samples=(
        Sample(((3, 4),), {"dim": 1, "reverse": False}),
        Sample(((3, 4),), {"dim": 0, "reverse": True}),
        Sample(((2, 3, 4),), {"dim": 1, "reverse": False}),
        Sample(((1,),), {"dim": 0, "reverse": True}),
    ),
    torch="torch.cumsum(a.flip(dim), dim).flip(dim) if reverse else torch.cumsum(a, dim)",
)
