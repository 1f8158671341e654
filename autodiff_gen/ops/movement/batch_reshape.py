"""A batch in groups: in an array [g, c n, ...] the groups are stored at the distance of the largest batch; in an array
[g c n, ...] the rows follow each other for any n. A reshape between the two is a copy; any other reshape is a view."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import ShapeError
from ...ir.build import apply
from ...ir.kernel_call import KernelCall, Operand, Result
from ...ir.node import Sample, define
from ...ir.op_kinds import Attrs, KernelOp
from ...ir.strides import Strided
from ...ir.types import Shape, Type, planned_size, product
from ..support import check_float


def _type(x: Type, *, shape: Shape) -> Type:
    check_float(x)
    few, many = sorted((x.shape, tuple(shape)), key=len)
    if len(many) != len(few) + 1 or few[1:] != many[2:] or few[0] != product(many[:2]):
        raise ShapeError(f"the shape {list(shape)} must have the same rows in groups, or without groups")
    return Type(x.dtype, tuple(shape))


def _call(layouts: Sequence[Strided], results: Sequence[Type], attrs: Attrs) -> KernelCall:
    shapes = layouts[0].shape, results[0].shape
    groups, extent, *rest = max(shapes, key=len)
    row = planned_size(tuple(rest))  # a row that follows the batch is stored as for the largest batch
    lda, ldc = (planned_size((extent,)) * row if len(s) > len(rest) + 1 else extent * row for s in shapes)
    size = extent * row
    sizes = {"m": groups, "n": size, "lda": lda, "ldc": ldc}
    return KernelCall("copy_rows_f32", {"x": Operand(0), "y": Result()}, sizes)


regroup = define(
    "regroup",  # y[g c n, ...] = x[g, c n, ...], or the reverse
    infer=_type,
    ref=lambda x, *, shape: np.reshape(x, shape),
    vjp=lambda dys, ins, outs, attrs, wanted: [apply("regroup", dys[0], shape=ins[0].type.shape)],
    lower=KernelOp(_call),
    samples=(
        Sample(((2, 3, 4),), {"shape": (6, 4)}),
        Sample(((6, 4),), {"shape": (3, 2, 4)}),
        Sample(((1, 5, 1),), {"shape": (5, 1)}),
    ),
    torch="torch.reshape(a, shape)",
)
