"""Values that depend on no operand."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dtypes import Shape, Type, f32, planned, planned_size, s32
from ..op import Extent, Iota, Op, Sample, register


def _extents(size: Any) -> Shape:
    return size if isinstance(size, tuple) else (size,)


def _iota(*, size: Any) -> Any:
    return np.arange(planned_size(_extents(size)), dtype="int32").reshape(planned(_extents(size)))


iota = register(
    Op(
        "iota",  # y[size] = 0, 1, 2, ..., row by row where size names several extents
        infer=lambda *, size: Type(s32, _extents(size)),
        ref=_iota,
        vjp=None,
        lower=Iota(),
        samples=(Sample((), {"size": 5}), Sample((), {"size": 1}), Sample((), {"size": (2, 1, 3)})),
        torch="torch.ones(size, dtype=torch.int32).flatten().cumsum(0, dtype=torch.int32).sub(1).reshape(size)",
    )
)


def _extent(*, extent: Any) -> Any:
    return np.float32(extent)


extent = register(
    Op(
        "extent",  # a count of elements, c*n, as a float: what a mean over the batch divides by
        infer=lambda *, extent: Type(f32, ()),
        ref=_extent,
        vjp=None,
        lower=Extent(),
        samples=(Sample((), {"extent": 6}),),
        torch="torch.tensor(float(extent))",
    )
)
