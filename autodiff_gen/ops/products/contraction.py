"""Contractions, which are lowered to calls of the gemm family of kernels."""

from __future__ import annotations

import numpy as np

from ...errors import ShapeError
from ...ir.build import apply
from ...ir.node import Sample, Value, define
from ...ir.op_forms import ByRows, WithLayout
from ...ir.op_kinds import Contraction, RowContraction
from ...ir.types import Type, conversion
from ..add_to_memory import register_added
from ..support import by_operand, same_dtype
from .epilogue import register_with_epilogue


def _matmul_type(a: Type, b: Type) -> Type:
    same_dtype(a, b)
    if a.quantization is not None:
        raise ShapeError(f"needs floats; {conversion(a)}")
    if len(a.shape) != len(b.shape) or len(a.shape) < 2:
        raise ShapeError("needs two matrices, or two stacks of as many axes")
    if a.shape[-1] != b.shape[-2]:
        raise ShapeError(f"the inner extents differ: {a.shape[-1]} columns against {b.shape[-2]} rows")
    if a.shape[:-2] != b.shape[:-2]:
        raise ShapeError(f"the leading axes differ: {list(a.shape[:-2])} against {list(b.shape[:-2])}")
    return Type(a.dtype, (*a.shape[:-1], b.shape[-1]))


def transposed(v: Value) -> Value:
    """v with its last two axes swapped; a view."""
    rank = len(v.type.shape)
    return apply("permute", v, dims=(*range(rank - 2), rank - 1, rank - 2))


matmul = define(
    "matmul",  # y[..., m, n] = a[..., m, k] . b[..., k, n]
    infer=_matmul_type,
    ref=lambda a, b: np.matmul(a, b),
    vjp=by_operand(
        lambda dy, a, b, y, attrs: apply("matmul", dy, transposed(b)),
        lambda dy, a, b, y, attrs: apply("matmul", transposed(a), dy),
    ),
    lower=Contraction(),
    samples=(
        Sample(((2, 3), (3, 4))),
        Sample(((1, 5), (5, 1))),
        Sample(((1, 1), (1, 1))),
        Sample(((3, 2, 4), (3, 4, 5))),
    ),
    torch="torch.matmul(a, b)",
    factors=(0, 1),
)

matmul_epilogue = register_with_epilogue("matmul_epilogue", matmul)
accumulate = register_added("accumulate", matmul)

matmul_rows = define(
    "matmul_rows",  # a product that is consumed row by row; created by the pass fuse_optimizer
    infer=_matmul_type,
    ref=lambda a, b: np.matmul(a, b),
    vjp=None,
    lower=RowContraction(),
    form=ByRows(
        "matmul",
        lambda operands, attrs: (
            apply("matmul_rows", *operands) if {v.ndim for v in operands} == {2} else None
        ),
        lambda operands, attrs: apply("matmul", *operands),
    ),
)

matmul_placed = define(
    "matmul_placed",  # a product whose result is stored with `layout`; created by store_in_order and for scans
    infer=lambda a, b, *, layout, of: _matmul_type(a, b),
    ref=lambda a, b, *, layout, of: np.matmul(a, b),
    vjp=None,
    lower=Contraction(),
    form=WithLayout("matmul"),
)
