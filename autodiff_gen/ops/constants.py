"""Values that depend on no operand."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dtypes import Type, f32, s32
from ..op import Extent, Iota, Op, register

iota = register(
    Op(
        "iota",  # y[size] = 0, 1, 2, ...
        infer=lambda *, size: Type(s32, (size,)),
        ref=lambda *, size: np.arange(size, dtype="int32"),
        vjp=None,
        lower=Iota(),
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
    )
)
