"""Selection of elements along an axis by indices, and the adjoints, which add the values of equal indices.

functional/index_limits.py ensures that indices are in range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...ir.build import apply
from ...ir.kernel_call import KernelCall, Operand, Result
from ...ir.node import Sample, Value, define
from ...ir.op_kinds import Attrs, KernelOp, Pick, Range, Tile
from ...ir.strides import Strided
from ...ir.types import Dim, Shape, Size, Type, product, varies
from ..add_to_memory import OVERWRITES, register_added
from ..support import as_s32, by_operand


def _integers(index: Type, only: str = "") -> None:
    if index.dtype.kind not in "iu" or (only and index.dtype.name != only):
        raise ShapeError(f"the index must be of {only or 'an integer dtype'}, not {index.dtype}")


def blocks(shape: Shape, dim: int, rank: int = 1) -> tuple[Size, Size, Size]:
    """The [outer, count, inner] extents of a dense array whose axes dim to dim + rank - 1 are indexed: the products of
    the extents before, of, and after these axes.
    """
    not_one = [d for d in shape if d != 1]
    if varies(not_one[1:]):
        raise ShapeError("the batch axis must come first; use F.permute")
    return product(shape[:dim]), product(shape[dim : dim + rank]), product(shape[dim + rank :])


def _axis(shape: Shape, dim: int) -> int:
    if not 0 <= dim < len(shape):
        raise ShapeError(f"dim={dim} is out of range for {len(shape)} axes")
    d = shape[dim]
    if isinstance(d, Dim):
        raise ShapeError(f"axis {dim} is the batch axis, which cannot be indexed")
    return d


# gather: one index for each element


def _gather_type(x: Type, index: Type, *, dim: int) -> Type:
    _integers(index)
    _axis(x.shape, dim)
    if len(x.shape) != len(index.shape) or any(
        a != b for i, (a, b) in enumerate(zip(x.shape, index.shape, strict=True)) if i != dim
    ):
        raise ShapeError(f"the index must have the first operand's extents, except along axis {dim}")
    return Type(x.dtype, index.shape)


def _gather_axes(x: Shape, index: Shape, attrs: Attrs) -> tuple[tuple[int | None, ...], tuple[int, ...]]:
    axes = tuple(range(len(x)))
    return tuple(None if i == attrs["dim"] else i for i in axes), axes


def _gather_gradient(dy: Value, x: Value, index: Value, y: Value, attrs: Attrs) -> Value:
    return apply("scatter_sum", as_s32(index), dy, dim=attrs["dim"], size=x.type.shape[attrs["dim"]])


gather = define(
    "gather",  # y[i, j, k] = x[i, index[i, j, k], k] for dim=1
    infer=_gather_type,
    ref=lambda x, index, *, dim: np.take_along_axis(x, index.astype(np.intp), dim),
    vjp=by_operand(_gather_gradient, None),
    lower=Pick(_gather_axes),
    samples=(
        Sample(((3, 4), (3, 6)), {"dim": 1}, dtypes={1: "s32"}, high=4),
        Sample(((3, 4), (2, 4)), {"dim": 0}, dtypes={1: "u8"}, high=3),
        Sample(((2, 3, 4), (2, 5, 4)), {"dim": 1}, dtypes={1: "s32"}, high=3),
        Sample(((5,), (1,)), {"dim": 0}, dtypes={1: "s32"}, high=5),
        Sample(((1, 2), (3, 2)), {"dim": 0}, dtypes={1: "s32"}, high=1),
    ),
    torch="torch.gather(a, dim, b.long())",
)


def _scatter_type(index: Type, src: Type, *, dim: int, size: int) -> Type:
    _integers(index, "s32")
    if src.dtype.kind != "f":
        raise ShapeError(f"needs floats to add, not {src.dtype}")
    if index.shape != src.shape or not 0 <= dim < len(src.shape):
        raise ShapeError("index and values must have the same shape, and dim must be one of its axes")
    y = Type(src.dtype, (*src.shape[:dim], size, *src.shape[dim + 1 :]))
    blocks(src.shape, dim)
    blocks(y.shape, dim)
    return y


def _scatter(index: Any, src: Any, *, dim: int, size: int) -> Any:
    y = np.zeros((*src.shape[:dim], size, *src.shape[dim + 1 :]), src.dtype)
    indices = list(np.indices(src.shape))
    indices[dim] = index.astype(np.intp)
    np.add.at(y, tuple(indices), src)
    return y


def _scatter_call(layouts: Sequence[Strided], results: Sequence[Type], attrs: Attrs) -> KernelCall:
    outer, count, inner = blocks(layouts[1].shape, attrs["dim"])
    return KernelCall(
        "scatter_sum_f32",
        {"index": Operand(0), "x": Operand(1), "y": Result()},
        {"outer": outer, "rows": attrs["size"], "count": count, "inner": inner},
    )


def _scatter_tile(at: Range, shapes: Sequence[Shape], attrs: Attrs) -> Tile | None:
    return Tile({0: at, 1: at}) if at.axis != attrs["dim"] else None


def _scatter_term(operand: int, at: Range, shapes: Sequence[Shape], attrs: Attrs) -> Tile | None:
    return Tile({0: at, 1: at}) if at.axis == attrs["dim"] else None


scatter_sum = define(
    "scatter_sum",  # y[i, v, k] = the sum of src[i, j, k] over all j with index[i, j, k] = v, for dim=1
    infer=_scatter_type,
    ref=_scatter,
    vjp=by_operand(None, lambda dy, index, src, y, attrs: apply("gather", dy, index, dim=attrs["dim"])),
    lower=KernelOp(_scatter_call, tile=_scatter_tile, term_of=_scatter_term),
    samples=(
        Sample(((3, 6), (3, 6)), {"dim": 1, "size": 4}, dtypes={0: "s32"}, high=4),
        Sample(((5, 2), (5, 2)), {"dim": 0, "size": 3}, dtypes={0: "s32"}, high=3),
        Sample(((2, 5, 3), (2, 5, 3)), {"dim": 1, "size": 2}, dtypes={0: "s32"}, high=2),
        Sample(((1,), (1,)), {"dim": 0, "size": 1}, dtypes={0: "s32"}, high=1),
    ),
    torch="torch.zeros([*b.shape[:dim], size, *b.shape[dim + 1:]], dtype=b.dtype)"
    ".scatter_add(dim, a.long(), b)",
)


# index_select: one index for each row


def _select_type(x: Type, index: Type, *, dim: int) -> Type:
    _integers(index)
    _axis(x.shape, dim)
    shape = (*x.shape[:dim], *index.shape, *x.shape[dim + 1 :])
    if sum(isinstance(d, Dim) for d in shape) > 1:
        raise ShapeError("index and values cannot both have the batch axis")
    return Type(x.dtype, shape)


def _select_axes(x: Shape, index: Shape, attrs: Attrs) -> tuple[tuple[int | None, ...], tuple[int, ...]]:
    dim, rank = attrs["dim"], len(index)
    of_x = (None if i == dim else i if i < dim else i + rank - 1 for i in range(len(x)))
    return tuple(of_x), tuple(range(dim, dim + rank))


def _select_gradient(dy: Value, x: Value, index: Value, y: Value, attrs: Attrs) -> Value:
    index, dim = as_s32(index), attrs["dim"]
    order = sorted(range(index.ndim), key=lambda k: not isinstance(index.type.shape[k], Dim))
    if order != list(range(index.ndim)):  # the batch first; rows are added up in any order
        rest = range(dim + index.ndim, dy.ndim)
        index = apply("permute", index, dims=tuple(order))
        dy = apply("permute", dy, dims=(*range(dim), *(dim + k for k in order), *rest))
    return apply("index_sum", index, dy, dim=dim, size=x.type.shape[dim])


index_select = define(
    "index_select",  # y[i, j..., k] = x[i, index[j...], k] for dim=1
    infer=_select_type,
    ref=lambda x, index, *, dim: np.take(x, index.astype(np.intp), axis=dim),
    vjp=by_operand(_select_gradient, None),
    lower=Pick(_select_axes),
    samples=(
        Sample(((5, 3), (4,)), {"dim": 0}, dtypes={1: "s32"}, high=5),
        Sample(((5, 3), (2, 3)), {"dim": 0}, dtypes={1: "u8"}, high=5),
        Sample(((2, 4, 3), (5,)), {"dim": 1}, dtypes={1: "s32"}, high=4),
        Sample(((2, 4), (3,)), {"dim": 1}, dtypes={1: "s32"}, high=4),
        Sample(((4, 2), ()), {"dim": 0}, dtypes={1: "s32"}, high=4),
        Sample(((1, 2), (3,)), {"dim": 0}, dtypes={1: "s32"}, high=1),
    ),
    torch="a.index_select(dim, b.reshape(-1).long()).reshape((*a.shape[:dim], *b.shape, *a.shape[dim + 1:]))",
)


def _sum_type(index: Type, src: Type, *, dim: int, size: int) -> Type:
    _integers(index, "s32")
    if src.dtype.kind != "f":
        raise ShapeError(f"needs floats to add, not {src.dtype}")
    rank = len(index.shape)
    if src.shape[dim : dim + rank] != index.shape or dim > len(src.shape) - rank:
        raise ShapeError(f"the index must have the values' extents from axis {dim} on")
    y = Type(src.dtype, (*src.shape[:dim], size, *src.shape[dim + rank :]))
    blocks(src.shape, dim, rank)
    blocks(index.shape, 0, rank)
    blocks(y.shape, dim)
    return y


def _sum(index: Any, src: Any, *, dim: int, size: int) -> Any:
    after = src.shape[dim + index.ndim :]
    y = np.zeros((*src.shape[:dim], size, *after), src.dtype)
    rows = src.reshape((*src.shape[:dim], index.size, *after))
    np.add.at(y, (slice(None),) * dim + (index.reshape(-1).astype(np.intp),), rows)
    return y


def _sum_call(layouts: Sequence[Strided], results: Sequence[Type], attrs: Attrs) -> KernelCall:
    index, src = layouts[:2]
    outer, count, inner = blocks(src.shape, attrs["dim"], len(index.shape))
    return KernelCall(
        "index_sum_f32",
        {"index": Operand(0), "x": Operand(1), "y": Result()},
        {"outer": outer, "rows": attrs["size"], "count": count, "inner": inner},
        OVERWRITES,
    )


def _sum_tile(at: Range, shapes: Sequence[Shape], attrs: Attrs) -> Tile | None:
    """The axes of the index are one axis of the result."""
    if at.axis == attrs["dim"]:
        return None
    return Tile({1: at if at.axis < attrs["dim"] else replace(at, axis=at.axis + len(shapes[0]) - 1)})


def _sum_term(operand: int, at: Range, shapes: Sequence[Shape], attrs: Attrs) -> Tile | None:
    axis = at.axis - attrs["dim"] * operand
    if not 0 <= axis < len(shapes[0]):
        return None
    return Tile({0: replace(at, axis=axis), 1: replace(at, axis=attrs["dim"] + axis)})


index_sum = define(
    "index_sum",  # y[i, v, k] = the sum of src[i, j..., k] over all j... with index[j...] = v, for dim=1
    infer=_sum_type,
    ref=_sum,
    vjp=by_operand(None, lambda dy, index, src, y, attrs: apply("index_select", dy, index, dim=attrs["dim"])),
    lower=KernelOp(_sum_call, summed=(1,), tile=_sum_tile, term_of=_sum_term),
    samples=(
        Sample(((4,), (4, 3)), {"dim": 0, "size": 5}, dtypes={0: "s32"}, high=5),
        Sample(((2, 3), (2, 3, 2)), {"dim": 0, "size": 4}, dtypes={0: "s32"}, high=4),
        Sample(((5,), (2, 5, 3)), {"dim": 1, "size": 3}, dtypes={0: "s32"}, high=3),
        Sample(((40,), (40, 20)), {"dim": 0, "size": 6}, dtypes={0: "s32"}, high=6),
        Sample(((), (3,)), {"dim": 0, "size": 4}, dtypes={0: "s32"}, high=4),
        Sample(((3,), (2, 3)), {"dim": 1, "size": 1}, dtypes={0: "s32"}, high=1),
    ),
    torch="torch.zeros([*b.shape[:dim], size, *b.shape[dim + a.ndim:]], dtype=b.dtype).index_add(dim, "
    "a.reshape(-1).long(), b.reshape([*b.shape[:dim], -1, *b.shape[dim + a.ndim:]]))",
)

index_sum_into = register_added("index_sum_into", index_sum)
