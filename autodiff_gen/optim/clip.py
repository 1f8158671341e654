"""Gradients cut down before any update, as by torch.nn.utils.clip_grad_norm_ and clip_grad_value_."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import functional as F
from ..errors import ModelError
from ..ir.node import Value
from ..ir.types import plain


def _positive(name: str, argument: str, value: Any) -> float:
    value = plain(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ModelError(f"{name}: {argument}={value!r} must be a finite number greater than 0")
    return float(value)


def clip_grad_norm(gradients: Sequence[Value], max_norm: float) -> list[Value]:
    """All gradients times min(1, max_norm / (norm + 1e-6)), norm the Euclidean length of all of them together.

    A barrier: no update begins before the last gradient is complete, so that all are stored.
    """
    limit = _positive("clip_grad_norm", "max_norm", max_norm)
    squares = [F.sum(F.square(g)) for g in gradients]
    total = squares[0]
    for more in squares[1:]:
        total = total + more
    factor = F.minimum(limit / (F.sqrt(total) + 1e-6), 1.0)
    return [g * factor for g in gradients]


def clip_grad_value(gradients: Sequence[Value], clip_value: float) -> list[Value]:
    """Every element between -clip_value and clip_value."""
    limit = _positive("clip_grad_value", "clip_value", clip_value)
    return [F.minimum(F.maximum(g, -limit), limit) for g in gradients]
