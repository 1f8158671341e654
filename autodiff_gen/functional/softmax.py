"""Softmax and its logarithm, numerically stable, composed of other functions, which are fused."""

from __future__ import annotations

from typing import Any

from ..ir.build import apply
from ..ir.names import with_role
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
    most = with_role(apply("amax", x, axes=(axis,), keepdim=True), "max")
    return with_role(x - detach(most), "shifted"), axis


@torch_lacks(dtype=None)
def softmax(input: Any, dim: int) -> Value:
    """exp(x) / sum(exp(x)) along `dim`."""
    z, axis = shifted("softmax", input, dim)
    e = with_role(exp(z), "exp_shifted")
    return e * with_role(1.0 / with_role(sum(e, axis, keepdim=True), "exp_sum"), "inv_sum")


@torch_lacks(dtype=None)
def log_softmax(input: Any, dim: int) -> Value:
    """log(softmax(x)) along `dim`, without cancellation."""
    z, axis = shifted("log_softmax", input, dim)
    e = with_role(exp(z), "exp_shifted")
    return z - with_role(log(with_role(sum(e, axis, keepdim=True), "exp_sum")), "log_sum")
