"""Losses over pairs and triplets of embeddings, and over distances."""

from __future__ import annotations

from typing import Any

from ..errors import ShapeError
from ..ir.node import Value
from .arguments import TensorLike, as_value, loss_function, shape_error, torch_lacks
from .elementwise import abs, eq, minimum, ne, relu, sqrt, square, where
from .losses import number_of, reduced
from .reductions import sum

__all__ = ["cosine_embedding_loss", "hinge_embedding_loss", "triplet_margin_loss"]

TINY = 1e-12  # added to squared norms, as in PyTorch, so that the cosine of a zero vector is defined


def _one(t: Value, number: int) -> Any:
    """The number as a constant of t's kind."""
    return float(number) if t.dtype.kind == "f" else number


def _check_signs(name: str, values: list[Value], t: Value) -> None:
    if t.dtype.kind == "u" or t.dtype.kind == "b":
        raise shape_error(name, [*values, t], "the target is 1 or -1; its dtype must be signed")


@torch_lacks(size_average=None, reduce=None)
@loss_function
def cosine_embedding_loss(
    input1: TensorLike,
    input2: TensorLike,
    target: TensorLike,
    margin: float = 0.0,
    *,
    reduction: str = "mean",
) -> Value:
    """1 - cos where the target is 1, max(0, cos - margin) where it is -1, with the cosine of the angle between input1
    and input2.

    Inputs f32[N, D] with a target [N], or [D] with a scalar; the target is a float or a signed integer.
    """
    name = "cosine_embedding_loss"
    a, b, t = as_value(input1), as_value(input2), as_value(target)
    margin = number_of(name, "margin", margin, -float("inf"))
    if a.shape != b.shape or a.ndim not in (1, 2) or t.shape != a.shape[:-1]:
        raise shape_error(name, [a, b, t], "inputs [N, D] need a target [N], inputs [D] a scalar")
    _check_signs(name, [a, b], t)
    lengths = (sum(square(a), -1) + TINY) * (sum(square(b), -1) + TINY)
    cosine = sum(a * b, -1) / sqrt(lengths)
    similar = where(eq(t, _one(t, 1)), 1.0 - cosine, 0.0)
    return reduced(name, where(eq(t, _one(t, -1)), relu(cosine - margin), similar), reduction)


@torch_lacks(size_average=None, reduce=None)
@loss_function
def hinge_embedding_loss(
    input: TensorLike, target: TensorLike, margin: float = 1.0, *, reduction: str = "mean"
) -> Value:
    """input where the target is 1, max(0, margin - input) where it is -1; both of one shape."""
    name = "hinge_embedding_loss"
    x, t = as_value(input), as_value(target)
    margin = number_of(name, "margin", margin, -float("inf"))
    if x.shape != t.shape:
        raise shape_error(name, [x, t], "input and target must have the same shape")
    _check_signs(name, [x], t)
    dissimilar = where(ne(t, _one(t, 1)), relu(margin - x), 0.0)
    return reduced(name, dissimilar + where(ne(t, _one(t, -1)), x, 0.0), reduction)


def _distance(a: Value, b: Value, p: float, eps: float) -> Value:
    """|a - b + eps| along the last axis; the gradient at 0 is 0."""
    d = a - b + eps
    if p == 1:
        return sum(abs(d), -1)
    squares = sum(square(d), -1)
    positive = squares > 0.0
    return where(positive, sqrt(where(positive, squares, 1.0)), squares)


@torch_lacks(size_average=None, reduce=None)
@loss_function
def triplet_margin_loss(
    anchor: TensorLike,
    positive: TensorLike,
    negative: TensorLike,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    *,
    reduction: str = "mean",
) -> Value:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) with the distance d(a, b) = |a - b + eps| in the norm
    `p` (1 or 2). All inputs are f32[N, D] or [D].

    swap: use the smaller of the negative's distances to the anchor and to the positive (Balntas et al. 2016).
    """
    name = "triplet_margin_loss"
    a, near, far = as_value(anchor), as_value(positive), as_value(negative)
    if not a.shape == near.shape == far.shape or a.ndim not in (1, 2):
        raise shape_error(name, [a, near, far], "all three must have one shape, [N, D] or [D]")
    if p not in (1, 2):
        raise ShapeError(f"{name}: p={p!r} is not supported; known: 1, 2")
    margin, eps = number_of(name, "margin", margin, 0.0), number_of(name, "eps", eps, 0.0)
    to_far = _distance(a, far, p, eps)
    if swap:
        to_far = minimum(to_far, _distance(near, far, p, eps))
    return reduced(name, relu(margin + _distance(a, near, p, eps) - to_far), reduction)
