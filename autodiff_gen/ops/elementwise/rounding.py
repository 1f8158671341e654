"""Piecewise constant functions; they propagate no gradient, because it is zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.node import define
from ...ir.op_kinds import ADD, ATOM, SELECT, Elementwise
from ..support import ONES, floating, simple

floor = define(
    "floor",
    infer=floating,
    ref=np.floor,
    vjp=simple(None),
    lower=Elementwise("floorf({0})", ATOM),
    samples=ONES,
    torch="torch.floor(a)",
    monotone=lambda attrs: True,
)

round_ = define(
    "round",  # to the nearest integer, ties to even
    infer=floating,
    ref=np.rint,
    vjp=simple(None),
    lower=Elementwise("ag_rintf({0})", ATOM),
    samples=ONES,
    torch="torch.round(a)",
    monotone=lambda attrs: True,
)


def _sign(x: Any) -> Any:
    return np.where(x > 0, 1, np.where(x < 0, -1, 0)).astype(np.asarray(x).dtype)


sign = define(
    "sign",  # -1, 0 or 1; 0 for NaN, as in PyTorch
    infer=floating,
    ref=_sign,
    vjp=simple(None),
    lower=Elementwise("{0} > 0.0f ? 1.0f : {0} < 0.0f ? -1.0f : 0.0f", SELECT, ADD, cheap=True),
    samples=ONES,
    torch="torch.sign(a)",
)
