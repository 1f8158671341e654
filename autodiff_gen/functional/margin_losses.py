"""Losses with a margin between scores, and negative log-likelihoods of distributions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..ir.build import apply
from ..ir.node import Value
from ..ir.types import planned
from ..ops.support import as_s32
from .activations import logsigmoid
from .arguments import TensorLike, as_value, loss_function, shape_error, torch_lacks
from .class_losses import class_weights, classes_last
from .distances import pairwise_distance
from .elementwise import detach, eq, exp, log, maximum, minimum, neg, relu, square, to, where
from .indexing import pick
from .losses import number_of, reduced, weighted
from .reductions import mean, sum
from .shapes import broadcast_to, unsqueeze

__all__ = [
    "gaussian_nll_loss",
    "margin_ranking_loss",
    "multi_margin_loss",
    "multilabel_soft_margin_loss",
    "poisson_nll_loss",
    "soft_margin_loss",
    "triplet_margin_with_distance_loss",
]


def _same(name: str, *given: Any) -> list[Value]:
    """All values, with signed integers converted to floats. Raises ShapeError unless they have one shape."""
    values = [to(v, "f32") if v.dtype.kind == "i" else v for v in map(as_value, given)]
    if any(v.shape != values[0].shape for v in values):
        raise shape_error(name, values, "all must have the same shape")
    return values


@torch_lacks(size_average=None, reduce=None)
@loss_function
def margin_ranking_loss(
    input1: TensorLike,
    input2: TensorLike,
    target: TensorLike,
    margin: float = 0.0,
    *,
    reduction: str = "mean",
) -> Value:
    """max(0, margin - target * (input1 - input2)), all of one shape. target: 1 where input1 should be greater, -1 where
    input2 should be."""
    name = "margin_ranking_loss"
    a, b, t = _same(name, input1, input2, target)
    return reduced(name, relu(number_of(name, "margin", margin, -math.inf) - t * (a - b)), reduction)


@torch_lacks(size_average=None, reduce=None)
@loss_function
def soft_margin_loss(input: TensorLike, target: TensorLike, *, reduction: str = "mean") -> Value:
    """log(1 + exp(-target * input)), both of one shape; targets are 1 or -1."""
    x, t = _same("soft_margin_loss", input, target)
    return reduced("soft_margin_loss", neg(logsigmoid(t * x)), reduction)


@torch_lacks(size_average=None, reduce=None)
@loss_function
def multilabel_soft_margin_loss(
    input: TensorLike, target: TensorLike, weight: TensorLike | None = None, *, reduction: str = "mean"
) -> Value:
    """The mean over the classes, the last axis, of binary_cross_entropy_with_logits, [..., C], [..., C] -> [...] before
    the reduction; weight: f32[C]."""
    name = "multilabel_soft_margin_loss"
    x, t = _same(name, input, target)
    losses = neg(t * logsigmoid(x) + (1.0 - t) * logsigmoid(neg(x)))
    return reduced(name, mean(weighted(name, losses, weight), -1), reduction)


@torch_lacks(size_average=None, reduce=None)
@loss_function
def multi_margin_loss(
    input: TensorLike,
    target: TensorLike,
    p: int = 1,
    margin: float = 1.0,
    weight: TensorLike | None = None,
    *,
    reduction: str = "mean",
) -> Value:
    """The sum over the classes i other than the target y of weight[y] * max(0, margin - x[y] + x[i])^p / C, p 1 or 2.
    input: scores x f32[N, C] or [C]; target: class indices, integer [N] or a scalar; weight: f32[C], 1 by default."""
    name = "multi_margin_loss"
    x, t = as_value(input), as_value(target)
    x = classes_last(name, x, t)
    if p not in (1, 2) or x.ndim > 2:
        raise shape_error(name, [x, t], f"needs scores [N, C] or [C], and p={p!r} to be 1 or 2")
    classes = planned(x.shape)[-1]
    limit = relu(number_of(name, "margin", margin, -math.inf) - unsqueeze(pick(x, t), -1) + x)
    limit = square(limit) if p == 2 else limit
    others = where(eq(unsqueeze(as_s32(t), -1), apply("iota", size=classes)), 0.0, limit)
    losses = sum(others, -1) * (1.0 / classes)
    if weight is not None:
        losses = losses * pick(broadcast_to(class_weights(name, x, weight), x.shape), t)
    return reduced(name, losses, reduction)


@torch_lacks(size_average=None, reduce=None)
@loss_function
def triplet_margin_with_distance_loss(
    anchor: TensorLike,
    positive: TensorLike,
    negative: TensorLike,
    *,
    distance_function: Callable[[Any, Any], Value] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Value:
    """triplet_margin_loss with any distance function of two values; pairwise_distance by default."""
    name = "triplet_margin_with_distance_loss"
    distance = pairwise_distance if distance_function is None else distance_function
    far = distance(anchor, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    limit = number_of(name, "margin", margin, 0.0)
    return reduced(name, relu(limit + distance(anchor, positive) - far), reduction)


@loss_function
def gaussian_nll_loss(
    input: TensorLike,
    target: TensorLike,
    var: TensorLike,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Value:
    """(log(var) + (input - target)^2 / var) / 2, with variances of at least eps; full: plus log(2 pi) / 2. var: a
    scalar, or of the input's shape, whose last axis may be absent or have extent 1."""
    name = "gaussian_nll_loss"
    x, t, v = as_value(input), as_value(target), as_value(var)
    if v.ndim and v.shape != x.shape and v.shape == x.shape[:-1]:
        v = unsqueeze(v, -1)
    if v.shape not in ((), x.shape, (*x.shape[:-1], 1)):
        raise shape_error(name, [x, v], "var must have the input's shape, with or without its last axis")
    v = v + detach(maximum(v, number_of(name, "eps", eps, 0.0)) - v)  # PyTorch's gradient ignores the limit
    losses = 0.5 * (log(v) + square(x - t) / v)
    return reduced(name, losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction)


@torch_lacks(size_average=None, reduce=None)
@loss_function
def poisson_nll_loss(
    input: TensorLike,
    target: TensorLike,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    *,
    reduction: str = "mean",
) -> Value:
    """exp(input) - target * input, for an input that is the logarithm of the rate; with log_input=False the input is
    the rate: input - target * log(input + eps). full: plus Stirling's approximation of log(target!) where target >
    1."""
    name = "poisson_nll_loss"
    x, t = as_value(input), as_value(target)
    losses = exp(x) - t * x if log_input else x - t * log(x + number_of(name, "eps", eps, 0.0))
    if full:
        n = maximum(t, 1.0)
        stirling = n * log(n) - n + 0.5 * log(2 * math.pi * n)
        losses = losses + where(t > 1.0, stirling, 0.0)
    return reduced(name, losses, reduction)
