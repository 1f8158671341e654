"""Softmax and its logarithm, numerically stable."""

from __future__ import annotations

from ..ir.build import apply
from ..ir.node import Value
from .arguments import TensorLike, as_value, axis_of, torch_lacks

__all__ = ["log_softmax", "softmax"]


@torch_lacks(dtype=None)
def softmax(input: TensorLike, dim: int) -> Value:
    """exp(input) / sum(exp(input)) along `dim`, without overflow."""
    x = as_value(input)
    return apply("softmax", x, axes=(axis_of("softmax", x, dim),))


@torch_lacks(dtype=None)
def log_softmax(input: TensorLike, dim: int) -> Value:
    """log(softmax(input)) along `dim`, without cancellation."""
    x = as_value(input)
    return apply("log_softmax", x, axes=(axis_of("log_softmax", x, dim),))
