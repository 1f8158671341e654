"""Losses whose input and target have one shape, and helpers of all losses.

Docstrings give the loss of an element; `reduction` is "mean" over all elements, "sum" or "none", as in PyTorch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir.build import constant
from ..ir.names import with_role
from ..ir.node import Value
from ..ir.types import broadcast, plain
from .arguments import TensorLike, as_value, loss_function, shape_error, torch_lacks
from .elementwise import abs, detach, eq, exp, log, log1p, maximum, neg, square, where
from .reductions import mean, sum

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "smooth_l1_loss",
]

KNOWN = '"mean", "sum", "none"'


def reduced(name: str, losses: Value, reduction: str, known: str = KNOWN) -> Value:
    """The losses reduced by `reduction`; a mean over the batch is over the n samples at run time."""
    if reduction == "none":
        return losses
    if reduction == "sum":
        return sum(losses)
    if reduction == "mean":
        return mean(losses)
    raise ShapeError(f"{name}: reduction={reduction!r}; known: {known}")


def weights_of(name: str, argument: str, weight: TensorLike) -> Value:
    """A weight as a value, f32 if it is an array. Raises ShapeError if it is not an array of numbers."""
    if isinstance(weight, Value):
        return weight
    try:
        return constant(np.asarray(weight, dtype=np.float32))
    except (TypeError, ValueError):
        raise ShapeError(f"{name}: {argument}={weight!r} is not an array of numbers") from None


def number_of(name: str, argument: str, value: TensorLike, low: float, high: float | None = None) -> float:
    """The hyperparameter as a float. Raises ShapeError unless it is a finite number in [low, high]."""
    value = plain(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise ShapeError(f"{name}: {argument}={value!r} must be a finite number")
    if value < low or (high is not None and value > high):
        limits = f"of at least {low:g}" if high is None else f"from {low:g} to {high:g}"
        raise ShapeError(f"{name}: {argument}={value!r} must be a number {limits}")
    return float(value)


def _pair(name: str, input: Any, target: Any) -> tuple[Value, Value]:
    x, t = as_value(input), as_value(target)
    if x.shape != t.shape:
        raise shape_error(name, [x, t], "input and target must have the same shape")
    return x, t


def weighted(name: str, losses: Value, weight: TensorLike | None) -> Value:
    """losses * weight; the weight broadcasts to the losses' shape. Raises ShapeError if it does not."""
    if weight is None:
        return losses
    w = weights_of(name, "weight", weight)
    _check_broadcast(name, losses, w, "weight")
    return losses * w


def _check_broadcast(name: str, losses: Value, w: Value, argument: str) -> None:
    try:
        fits = broadcast(losses.shape, w.shape) == losses.shape
    except ShapeError:
        fits = False
    if not fits:
        raise shape_error(
            name, [losses, w], f"{argument} {list(w.shape)} does not broadcast to the input's shape"
        )


@torch_lacks(size_average=None, reduce=None, weight=None)
@loss_function
def mse_loss(input: TensorLike, target: TensorLike, reduction: str = "mean") -> Value:
    """(input - target)^2, both of one shape; PyTorch would broadcast them with a warning."""
    x, t = _pair("mse_loss", input, target)
    return reduced("mse_loss", square(with_role(x - t, "diff")), reduction)


@torch_lacks(size_average=None, reduce=None, weight=None)
@loss_function
def l1_loss(input: TensorLike, target: TensorLike, reduction: str = "mean") -> Value:
    """|input - target|, both of one shape; the gradient is 0 where they are equal."""
    x, t = _pair("l1_loss", input, target)
    return reduced("l1_loss", abs(with_role(x - t, "diff")), reduction)


@torch_lacks(size_average=None, reduce=None)
@loss_function
def smooth_l1_loss(
    input: TensorLike, target: TensorLike, reduction: str = "mean", beta: float = 1.0
) -> Value:
    """With d = input - target: d^2 / (2 beta) if |d| < beta, otherwise |d| - beta / 2; beta=0 is l1_loss. Girshick
    2015."""
    x, t = _pair("smooth_l1_loss", input, target)
    beta = number_of("smooth_l1_loss", "beta", beta, 0.0)
    d = with_role(x - t, "diff")
    size = abs(d)
    losses = where(size < beta, square(d) * (0.5 / beta), size - 0.5 * beta) if beta else size
    return reduced("smooth_l1_loss", losses, reduction)


@torch_lacks(weight=None)
@loss_function
def huber_loss(input: TensorLike, target: TensorLike, reduction: str = "mean", delta: float = 1.0) -> Value:
    """With d = input - target: d^2 / 2 if |d| < delta, otherwise delta (|d| - delta / 2). Huber 1964."""
    x, t = _pair("huber_loss", input, target)
    if number_of("huber_loss", "delta", delta, 0.0) == 0:
        raise ShapeError("huber_loss: delta=0 must be greater than 0")
    d = with_role(x - t, "diff")
    size = abs(d)
    losses = where(size < delta, 0.5 * square(d), delta * (size - 0.5 * delta))
    return reduced("huber_loss", losses, reduction)


def _or_minus_100(v: Value) -> Value:
    """max(v, -100), without gradient."""
    return detach(maximum(v, -100.0))


# PyTorch divides the gradient of binary_cross_entropy by p (1 - p), but at least by this.
LEAST_VARIANCE = 1e-12


@torch_lacks(size_average=None, reduce=None)
@loss_function
def binary_cross_entropy(
    input: TensorLike, target: TensorLike, weight: TensorLike | None = None, *, reduction: str = "mean"
) -> Value:
    """-(t log(p) + (1 - t) log(1 - p)) of probabilities p, the input, and targets t; each logarithm is at least -100,
    as in PyTorch. `weight` broadcasts to the input.

    As in PyTorch, the gradient of p is (p - t) / max(p (1 - p), 1e-12), which is finite where p is 0 or 1. The gradient
    of the target is finite there too; PyTorch's is infinite.
    """
    p, t = _pair("binary_cross_entropy", input, target)
    certain = p * (1.0 - p) < LEAST_VARIANCE
    inside = where(certain, 0.5, p)
    losses = where(
        certain,
        # The value of the loss, and a term with the gradient with respect to p.
        (t - 1.0) * _or_minus_100(log1p(neg(p)))
        - t * _or_minus_100(log(p))
        + (p - detach(p)) * ((detach(p) - t) * (1.0 / LEAST_VARIANCE)),
        (t - 1.0) * log1p(neg(inside)) - t * log(inside),
    )
    return reduced("binary_cross_entropy", weighted("binary_cross_entropy", losses, weight), reduction)


@torch_lacks(size_average=None, reduce=None)
@loss_function
def binary_cross_entropy_with_logits(
    input: TensorLike,
    target: TensorLike,
    weight: TensorLike | None = None,
    *,
    reduction: str = "mean",
    pos_weight: TensorLike | None = None,
) -> Value:
    """binary_cross_entropy of sigmoid(input), accurate for scores of any magnitude, without the limit of -100.

    `weight` and `pos_weight` broadcast to the input; pos_weight multiplies the term t log(p) only.
    """
    name = "binary_cross_entropy_with_logits"
    x, t = _pair(name, input, target)
    # The loss is (1 - t) x + w log(1 + exp(-x)), w = 1 + (pos_weight - 1) t: separate forms for x > 0 and x <= 0 avoid
    # cancellation, and have the same derivatives at 0.
    positive = x > 0.0
    softplus = log1p(exp(where(positive, neg(x), x)))
    slope = t
    if pos_weight is not None:
        w = weights_of(name, "pos_weight", pos_weight)
        _check_broadcast(name, x, w, "pos_weight")
        slope, softplus = w * t, ((w - 1.0) * t + 1.0) * softplus
    losses = where(positive, 1.0 - t, neg(slope)) * x + softplus
    return reduced(name, weighted(name, losses, weight), reduction)


@torch_lacks(size_average=None, reduce=None)
@loss_function
def kl_div(input: TensorLike, target: TensorLike, reduction: str = "mean", log_target: bool = False) -> Value:
    """target * (log(target) - input), 0 where the target is 0. input: log-probabilities; target: probabilities, or
    their logarithms with log_target.

    reduction "batchmean" divides the sum by the first extent, "mean" by the number of elements, as in PyTorch.
    """
    x, t = _pair("kl_div", input, target)
    losses = exp(t) * (t - x) if log_target else t * log(where(eq(t, 0.0), 1.0, t)) - t * x
    if reduction == "batchmean":
        total = sum(losses)
        return total / x.shape[0] if x.ndim else total
    return reduced("kl_div", losses, reduction, known=f'"batchmean", {KNOWN}')
