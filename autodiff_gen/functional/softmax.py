"""Softmax and its logarithm, numerically stable, whose parts are fused."""

from __future__ import annotations

from ..ir.build import apply
from ..ir.names import with_role
from ..ir.node import Value
from ..ops.axes.softmax import less_largest
from .arguments import TensorLike, as_value, axis_of, torch_lacks
from .elementwise import exp, log
from .reductions import sum

__all__ = ["log_softmax", "softmax"]


def shifted(name: str, input: TensorLike, dim: int) -> tuple[Value, int]:
    """x - max(x) along `dim`, whose exponentials cannot overflow, and the axis."""
    x = as_value(input)
    axis = axis_of(name, x, dim)
    return less_largest(x, (axis,)), axis


@torch_lacks(dtype=None)
def softmax(input: TensorLike, dim: int) -> Value:
    """exp(x) / sum(exp(x)) along `dim`."""
    x = as_value(input)
    return apply("softmax", x, axes=(axis_of("softmax", x, dim),))


@torch_lacks(dtype=None)
def log_softmax(input: TensorLike, dim: int) -> Value:
    """log(softmax(x)) along `dim`, without cancellation."""
    z, axis = shifted("log_softmax", input, dim)
    e = with_role(exp(z), "exp_shifted")
    return z - with_role(log(with_role(sum(e, axis, keepdim=True), "exp_sum")), "log_sum")
