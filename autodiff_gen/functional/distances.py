"""Vectors of length 1, and similarities and distances of vectors."""

from __future__ import annotations

from typing import Any

from ..errors import ShapeError
from ..ir.node import Value
from ..ir.types import broadcast
from .arguments import Dims, TensorLike, as_value, axis_of, shape_error, torch_lacks
from .elementwise import clamp, detach, maximum
from .losses import number_of
from .reductions import norm, sum
from .shapes import broadcast_to, unsqueeze

__all__ = ["cdist", "cosine_similarity", "normalize", "pairwise_distance"]


@torch_lacks(out=None)
def normalize(input: TensorLike, p: float = 2.0, dim: Dims = 1, eps: float = 1e-12) -> Value:
    """input / max(norm(input, p), eps), with the norm along `dim`; p as for F.norm."""
    x = as_value(input)
    return x / clamp(norm(x, p, dim, keepdim=True), min=number_of("normalize", "eps", eps, 0.0))


def cosine_similarity(x1: TensorLike, x2: TensorLike, dim: int = 1, eps: float = 1e-8) -> Value:
    """The cosine of the angle between x1 and x2 along `dim`, whose shapes broadcast. A norm below eps counts as eps."""
    a, b = _together("cosine_similarity", x1, x2)
    axis = axis_of("cosine_similarity", a, dim)
    eps = number_of("cosine_similarity", "eps", eps, 0.0)

    def unit(v: Value) -> Value:
        length = norm(v, 2, axis, keepdim=True)
        return v / (length + detach(maximum(length, eps) - length))  # PyTorch's gradient ignores the limit

    return sum(unit(a) * unit(b), axis)


def pairwise_distance(
    x1: TensorLike, x2: TensorLike, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Value:
    """norm(x1 - x2 + eps, p) along the last axis, [N, D], [N, D] -> [N]; other shapes broadcast. p as for F.norm."""
    a, b = _together("pairwise_distance", x1, x2)
    return norm(a - b + number_of("pairwise_distance", "eps", eps, 0.0), p, -1, keepdim)


@torch_lacks(compute_mode="use_mm_for_euclid_dist_if_necessary")
def cdist(x1: TensorLike, x2: TensorLike, p: float = 2.0) -> Value:
    """The distance of each row of x1 [..., P, D] to each row of x2 [..., R, D] -> [..., P, R], in the norm p, as for
    F.norm. It is computed from differences, never from products; the gradient at 0 is 0."""
    a, b = as_value(x1), as_value(x2)
    if min(a.ndim, b.ndim) < 2 or a.shape[-1] != b.shape[-1]:
        raise shape_error("cdist", [a, b], "needs [..., P, D] and [..., R, D] with the same D")
    return norm(unsqueeze(a, -2) - unsqueeze(b, -3), p, -1)


def _together(name: str, x1: Any, x2: Any) -> tuple[Value, Value]:
    """Both, broadcast to one shape."""
    a, b = as_value(x1), as_value(x2)
    try:
        shape = broadcast(a.shape, b.shape)
    except ShapeError as error:
        raise shape_error(name, [a, b], str(error)) from None
    return broadcast_to(a, shape), broadcast_to(b, shape)
