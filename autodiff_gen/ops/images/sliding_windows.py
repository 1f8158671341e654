"""All windows of an image, a view whose elements may overlap."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.node import define
from ...ir.op_kinds import View, ViewKind
from ...ir.types import Type
from .windows import Pair, image, output_size


def _type(x: Type, *, kernel: Pair, stride: Pair, dilation: Pair) -> Type:
    h, w, c = image(x)
    out = output_size((h, w), kernel, stride, (0, 0, 0, 0), dilation)
    return Type(x.dtype, (x.shape[0], *out, *kernel, c))


def _windows(x: Any, *, kernel: Pair, stride: Pair, dilation: Pair) -> Any:
    reach = tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True))
    found = np.lib.stride_tricks.sliding_window_view(x, reach, (1, 2))  # [n, p, q, c, i, j]
    taken = found[:, :: stride[0], :: stride[1], :, :: dilation[0], :: dilation[1]]
    return np.moveaxis(taken, 3, 5)


sliding_windows = define(
    # y[n, p, q, i, j, c] = x[n, p sh + i dh, q sw + j dw, c]; created by the pass copy_images
    "sliding_windows",
    infer=_type,
    ref=_windows,
    vjp=None,
    lower=View(lambda a, b, attrs: None, ViewKind.WINDOWS),
)
