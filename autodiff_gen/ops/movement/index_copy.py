"""A tensor whose elements at some indices along an axis come from another tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...ir.build import apply, constant
from ...ir.node import CONST, Sample, Value, define
from ...ir.op_kinds import SELECT, Attrs, Composite, Elementwise
from ...ir.quantization import Quantization
from ...ir.types import Type, broadcast, planned, s32
from ..elementwise.masks import CHOSEN
from ..support import by_operand


def _type(x: Type, source: Type, *, dim: int, index: tuple[int, ...]) -> Type:
    extent = planned(x.shape)[dim]
    if len(set(index)) != len(index) or not all(0 <= i < extent for i in index):
        raise ShapeError(f"the indices must be different and from 0 to {extent - 1}")
    if source.dtype is not x.dtype or source.shape != (*x.shape[:dim], len(index), *x.shape[dim + 1 :]):
        raise ShapeError(f"the source must be {x.dtype} and have {len(index)} elements along axis {dim}")
    return x


def _copied(x: Any, source: Any, *, dim: int, index: tuple[int, ...]) -> Any:
    y = np.array(x)
    y[(slice(None),) * dim + (list(index),)] = source
    return y


def _along(array: Any, dim: int, rank: int) -> Value:
    """A constant with an element for each index along the axis `dim`."""
    return constant(np.reshape(array, (-1, *(1,) * (rank - 1 - dim))), role="trains")


def _expanded(operands: Sequence[Value], attrs: Attrs) -> list[Value]:
    """index_copy as a selection between x and source. If x is a constant, only the elements that stay are stored."""
    x, source = operands
    dim, index = attrs["dim"], list(attrs["index"])
    extent = planned(x.type.shape)[dim]
    is_copied = np.isin(np.arange(extent), index)
    place = np.zeros(extent, np.int32)
    place[index] = np.arange(len(index))
    stays, of = x, x.type.quantization
    if x.node.op is CONST and not is_copied.all():
        place[~is_copied] = np.arange(extent - len(index))
        rest = np.compress(~is_copied, x.node.attrs["value"], dim)
        stays = constant(rest, x.type.dtype, role="constants")
    places = constant(place, s32, role="place")
    chosen = apply("index_select", source, places, dim=dim)
    if stays is not x:
        stays = apply("index_select", stays, places, dim=dim)
    return [apply("merged", _along(is_copied, dim, x.ndim), chosen, stays, quantization=of)]


def _gradient(dy: Value, x: Value, source: Value, y: Value, attrs: Attrs) -> Value:
    stays = np.ones(planned(x.type.shape)[attrs["dim"]], bool)
    stays[list(attrs["index"])] = False
    return apply("where", _along(stays, attrs["dim"], x.ndim), dy, 0.0)


def _source_gradient(dy: Value, x: Value, source: Value, y: Value, attrs: Attrs) -> Value:
    index = constant(np.array(attrs["index"], np.int32), s32, role="trained_channels")
    return apply("index_select", dy, index, dim=attrs["dim"])


def _merged_type(mask: Type, source: Type, x: Type, *, quantization: Quantization | None) -> Type:
    if mask.dtype.kind != "b" or source.dtype is not x.dtype:
        raise ShapeError(f"needs a mask and two tensors of one dtype, not {mask}, {source} and {x}")
    if source.shape != x.shape or broadcast(mask.shape, x.shape) != x.shape:
        raise ShapeError("needs two tensors of one shape, to which the mask broadcasts")
    return Type(x.dtype, x.shape, quantization)


merged = define(
    "merged",  # b where a is true, else c; `quantization`: of the result
    infer=_merged_type,
    ref=lambda mask, source, x, *, quantization: np.where(mask, source, x),
    vjp=None,
    lower=Elementwise("{0} ? {1} : {2}", SELECT, CHOSEN, cheap=True),
    samples=(
        Sample(((2, 3), (2, 3), (2, 3)), {"quantization": None}, dtypes={0: "bool"}),
        Sample(((2, 1), (2, 3), (2, 3)), {"quantization": None}, dtypes={0: "bool"}),
    ),
    torch="torch.where(a, b, c)",
    chooses=(1, 2),
)

index_copy = define(
    "index_copy",  # a with the elements `index` along axis `dim` replaced by b
    infer=_type,
    ref=_copied,
    vjp=by_operand(_gradient, _source_gradient),
    lower=Composite(_expanded),
    samples=(
        Sample(((3, 5), (3, 2)), {"dim": 1, "index": (4, 1)}),
        Sample(((4, 2, 3), (1, 2, 3)), {"dim": 0, "index": (2,)}),
    ),
    torch="a.index_copy(dim, torch.tensor(index), b)",
)
