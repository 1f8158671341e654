"""Values that depend on no operand."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dtypes import Type, f32, s32
from ..op import Extent, Iota, Op, Sample, register

iota = register(
    Op(
        "iota",  # y[size] = 0, 1, 2, ...
        infer=lambda *, size: Type(s32, (size,)),
        ref=lambda *, size: np.arange(size, dtype="int32"),
        vjp=None,
        lower=Iota(),
        samples=(Sample((), {"size": 5}), Sample((), {"size": 1})),
        torch="torch.arange(size, dtype=torch.int32)",
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
