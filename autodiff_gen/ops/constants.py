"""Ops without operands."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir.node import Sample, define
from ..ir.op_kinds import Extent, Iota
from ..ir.types import Shape, Type, f32, planned, planned_size, s32


def _extents(size: Any) -> Shape:
    return size if isinstance(size, tuple) else (size,)


def _iota(*, size: Any) -> Any:
    return np.arange(planned_size(_extents(size)), dtype="int32").reshape(planned(_extents(size)))


iota = define(
    "iota",  # y[size] = 0, 1, 2, ..., in row-major order if size has several extents
    infer=lambda *, size: Type(s32, _extents(size)),
    ref=_iota,
    vjp=None,
    lower=Iota(),
    samples=(Sample((), {"size": 5}), Sample((), {"size": 1}), Sample((), {"size": (2, 1, 3)})),
    torch="torch.ones(size, dtype=torch.int32).flatten().cumsum(0, dtype=torch.int32).sub(1).reshape(size)",
)


def _places_type(*, shape: Shape, strides: tuple[int, ...], offset: int) -> Type:
    if len(strides) != len(shape):
        raise ShapeError(f"{len(strides)} strides for {len(shape)} axes")
    return Type(s32, shape)


def _places(*, shape: Shape, strides: tuple[int, ...], offset: int) -> Any:
    index = np.indices(planned(shape), dtype="int32")
    steps = np.array(strides, dtype="int32").reshape(-1, *(1 for _ in shape))
    return np.asarray(offset + (index * steps).sum(0, dtype="int32"), dtype="int32")


places = define(
    # A strided iota, offset + sum of index[k] * strides[k]: the element offsets of a view. Created by the pass
    # rematerialize_random.
    "places",
    infer=_places_type,
    ref=_places,
    vjp=None,
    lower=Iota(),
)


first_element = define(
    # The number of elements before the elements of a micro-batch, c*start. Created by the pass micro_batches.
    "first_element",
    infer=lambda *, extent: Type(s32, ()),
    ref=lambda *, extent: np.int32(extent),
    vjp=None,
    lower=Extent(),
    samples=(Sample((), {"extent": 6}),),
    torch="torch.tensor(extent, dtype=torch.int32)",
)


def _extent(*, extent: Any) -> Any:
    return np.float32(extent)


extent = define(
    "extent",  # a number of elements, c*n, as a float: the divisor of a mean over the batch
    infer=lambda *, extent: Type(f32, ()),
    ref=_extent,
    vjp=None,
    lower=Extent(),
    samples=(Sample((), {"extent": 6}),),
    torch="torch.tensor(float(extent))",
)
