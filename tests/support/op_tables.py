"""Tables of ops that several tests read: shapes that follow the batch, and special numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from op_cases import SAMPLED

from autodiff_gen.ir.node import OPS, Op
from autodiff_gen.ir.op_kinds import Elementwise, Reduce
from autodiff_gen.ir.types import Dim
from autodiff_gen.ops.images.avg_pooling import averaging
from autodiff_gen.ops.images.convolution import convolving
from autodiff_gen.ops.images.depthwise import depthwise
from autodiff_gen.ops.images.max_pooling import pooling

# Shapes that follow the batch: operands (n is the batch extent), attributes.
n = Dim(1, 4)
BATCHED: list[tuple[str, list[Any], dict[str, Any]]] = [
    *((name, [(n, 3), (3,)], {}) for name in ("add", "sub", "mul", "div", "maximum", "minimum", "lt", "eq")),
    *((name, [(n, 3)], {}) for name in ("exp", "relu", "sigmoid", "tanh", "square", "to_s32")),
    ("add", [(n, 3), (n, 1)], {}),
    ("matmul", [(n, 3), (3, 2)], {}),
    ("matmul", [(3, n), (n, 2)], {}),
    ("matmul", [(n, 2, 3), (n, 3, 2)], {}),
    ("softplus", [(n, 3)], {"threshold": 20.0}),
    ("hardtanh", [(n, 3)], {"min_val": 0.0, "max_val": 1.0}),
    ("gelu", [(n, 3)], {}),
    ("round", [(n, 3)], {}),
    ("prod", [(n, 3)], {"axes": (1,), "keepdim": True}),
    ("prod", [(n, 3)], {"axes": (0,), "keepdim": False}),
    ("sum", [(n, 3)], {"axes": (0,), "keepdim": False}),
    ("sum", [(n, 3)], {"axes": (1,), "keepdim": True}),
    ("sum", [(n, 3)], {"axes": (0, 1), "keepdim": False}),
    ("amax", [(n, 3)], {"axes": (0,), "keepdim": True}),
    ("max_with_index", [(n, 3)], {"axes": (0,), "keepdim": False}),
    ("max_with_index", [(n, 3)], {"axes": (1,), "keepdim": False}),
    ("reshape", [(n, 6)], {"shape": (n, 2, 3)}),
    ("reshape", [(n, 6)], {"shape": (Dim(6, 4),)}),
    ("permute", [(n, 3)], {"dims": (1, 0)}),
    ("broadcast_to", [(3,)], {"shape": (n, 3)}),
    ("pick", [(n, 3), ((n,), "u8")], {}),
    ("avg_pool2d", [(n, 4, 5, 3)], averaging((2, 2), (2, 1))),
    ("gather", [(n, 5), ((n, 2), "u8")], {"dim": 1}),
    ("index_select", [(5, 2), ((n, 3), "s32")], {"dim": 0}),
    ("index_select", [(n, 5), ((2,), "u8")], {"dim": 1}),
    ("scatter_sum", [((n, 4), "s32"), (n, 4)], {"dim": 1, "size": 3}),
    ("index_sum", [((n, 2), "s32"), (n, 2, 3)], {"dim": 0, "size": 4}),
    ("column_sums", [(n, 3)], {}),
    ("cumsum", [(n, 3)], {"dim": 0, "reverse": True}),
    ("cumsum", [(n, 3, 2)], {"dim": 1, "reverse": False}),
    ("slice", [(n, 5)], {"shape": (n, 2), "starts": (0, 4), "steps": (1, -2)}),
    ("slice", [(4, n)], {"shape": (3, n), "starts": (1, 0), "steps": (1, 1)}),
    (
        "assemble",
        [(n, 3), (n, 2)],
        {"shape": (n, 6), "starts": ((0, 3), (0, 0)), "steps": ((1, 1), (1, 1)), "fill": 0.5},
    ),
    ("max_pool2d", [(n, 4, 5, 3)], pooling((2, 2), (2, 1))),
    ("conv2d", [(n, 4, 5, 2), (4, 3, 2, 1)], convolving((2, 1), (1, 0, 0, 2), groups=2)),
    ("conv2d_dx", [(n, 2, 3, 4), (4, 3, 2, 2)], convolving() | {"size": (4, 4)}),
    ("conv2d_dw", [(n, 4, 4, 2), (n, 2, 3, 4)], convolving() | {"kernel": (3, 2)}),
    ("depthwise2d", [(n, 4, 5, 2), (3, 2, 2)], depthwise((2, 1))),
    ("depthwise2d_dw", [(n, 4, 4, 2), (n, 2, 3, 2)], depthwise() | {"kernel": (3, 2)}),
]

SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, 3e38, -0.5], dtype=np.float32)


def special_operands(op: Op) -> list[Any]:
    """Every pair of special numbers, or each of them."""
    if len(op.samples[0].inputs) == 1:
        return [SPECIAL]
    a, b = np.meshgrid(SPECIAL, SPECIAL)
    return [a.ravel(), b.ravel()]


SPECIAL_OPS = [
    name
    for name in SAMPLED
    if isinstance(OPS[name].lower, Elementwise)
    and not OPS[name].samples[0].dtypes
    and not name.startswith("to_")
]

REDUCTIONS = [  # of floats
    name for name in SAMPLED if isinstance(OPS[name].lower, Reduce) and not OPS[name].samples[0].dtypes
]
ROWS_OF_SPECIALS = [
    [1.0, np.nan, 2.0],
    [np.inf, -np.inf, 1.0],
    [-np.inf, -np.inf, -np.inf],
    [np.inf, np.inf, np.inf],
]
