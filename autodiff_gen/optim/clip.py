"""Gradient clipping, as in torch.nn.utils.clip_grad_norm_ and clip_grad_value_."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .. import functional as F
from ..errors import ModelError
from ..ir.names import name_of, with_role
from ..ir.node import Value, base
from ..ir.origin import building, named
from ..ir.types import plain


def _positive(name: str, argument: str, value: Any) -> float:
    value = plain(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ModelError(f"{name}: {argument}={value!r} must be a finite number greater than 0")
    return float(value)


@named("clip_grad_norm")
def clip_grad_norm(gradients: Sequence[Value], max_norm: float) -> list[Value]:
    """All gradients times min(1, max_norm / (norm + 1e-6)), with the Euclidean norm of all gradients together, as
    torch.nn.utils.clip_grad_norm_.

    No update can start before the last gradient is complete, so all gradients are stored. Raises ModelError for a limit
    that is not positive.
    """
    limit = _positive("clip_grad_norm", "max_norm", max_norm)
    squares = [with_role(F.sum(F.square(g)), f"{name_of(base(g))}_squares") for g in gradients]
    total = squares[0]
    for more in squares[1:]:
        total = total + more
    norm = with_role(F.sqrt(total), "grad_norm")
    ratio = with_role(limit / (norm + 1e-6), "ratio")
    factor = with_role(F.minimum(ratio, 1.0), "grad_scale")
    return [_clipped(g, lambda g: g * factor) for g in gradients]


@named("clip_grad_value")
def clip_grad_value(gradients: Sequence[Value], clip_value: float) -> list[Value]:
    """All elements clamped to [-clip_value, clip_value], as torch.nn.utils.clip_grad_value_. Raises ModelError for a
    limit that is not positive."""
    limit = _positive("clip_grad_value", "clip_value", clip_value)
    return [_clipped(g, lambda g: F.minimum(F.maximum(g, -limit), limit)) for g in gradients]


def _clipped(g: Value, clip: Callable[[Value], Value]) -> Value:
    """The gradient after clipping, with the scope of the gradient, so that comments assign it to the parameter."""
    with building(g.node.origin.scope):
        return with_role(clip(g), "clipped_grad")
