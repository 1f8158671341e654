"""Softmax and its logarithm, numerically stable, composed of other functions, which are fused."""

from __future__ import annotations

from typing import Any

from ..ir.build import apply
from ..ir.node import Value
from .arguments import as_value, axis_of, torch_lacks
from .elementwise import detach, exp, log
from .reductions import sum

__all__ = ["log_softmax", "softmax"]


def shifted(name: str, input: Any, dim: int) -> tuple[Value, int]:
    """x - max(x) along `dim`, whose exponentials cannot overflow, and the axis. The maximum is detached, because it
    cancels in the gradient."""
    x = as_value(input)
    axis = axis_of(name, x, dim)
    if x.shape[axis] == 1:
        return x - detach(x), axis
    return x - detach(apply("amax", x, axes=(axis,), keepdim=True)), axis


@torch_lacks(dtype=None)
def softmax(input: Any, dim: int) -> Value:
    """exp(x) / sum(exp(x)) along `dim`."""
    z, axis = shifted("softmax", input, dim)
    e = exp(z)
    return e * (1.0 / sum(e, axis, keepdim=True))


@torch_lacks(dtype=None)
def log_softmax(input: Any, dim: int) -> Value:
    """log(softmax(x)) along `dim`, without cancellation."""
    z, axis = shifted("log_softmax", input, dim)
    return z - log(sum(exp(z), axis, keepdim=True))
