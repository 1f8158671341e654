"""Softmax and losses, built from other functions: stable, and cheap once fused."""

from __future__ import annotations

from typing import Any

from ..errors import ShapeError
from ..ir import Value, apply
from .arguments import as_value, axis_of, refusal, torch_lacks
from .elementwise import detach, exp, log, maximum, neg, square, where
from .products import pick
from .reductions import mean, sum


def _shifted(name: str, input: Any, dim: int) -> tuple[Value, int]:
    """x - max(x), whose exponentials cannot overflow; the maximum cancels in the gradient, so none flows
    through it."""
    x = as_value(input)
    axis = axis_of(name, x, dim)
    if x.shape[axis] == 1:
        return x - detach(x), axis
    return x - detach(apply("amax", x, axes=(axis,), keepdim=True)), axis


@torch_lacks(dtype=None)
def softmax(input: Any, dim: int) -> Value:
    """exp(x) / sum(exp(x)) along `dim`."""
    z, axis = _shifted("softmax", input, dim)
    e = exp(z)
    return e * (1.0 / sum(e, axis, keepdim=True))


@torch_lacks(dtype=None)
def log_softmax(input: Any, dim: int) -> Value:
    """log(softmax(x)) along `dim`, without its loss of digits."""
    z, axis = _shifted("log_softmax", input, dim)
    return z - log(sum(exp(z), axis, keepdim=True))


def _reduced(name: str, losses: Value, reduction: str) -> Value:
    if reduction == "none":
        return losses
    if reduction == "sum":
        return sum(losses)
    if reduction == "mean":
        return mean(losses)
    raise ShapeError(f'{name}: reduction={reduction!r}; known: "mean", "sum", "none"')


def _check_classes(name: str, x: Value, target: Value) -> None:
    if target.dtype.kind not in "iu":
        raise refusal(name, [x, target], "the target must hold class indices, of an integer dtype")
    if x.ndim not in (1, 2) or target.shape != x.shape[:-1]:
        raise refusal(
            name,
            [x, target],
            f"scores [N, C] want a target [N], scores [C] a scalar; got {list(target.shape)}",
        )


@torch_lacks(weight=None, size_average=None, ignore_index=-100, reduce=None)
def nll_loss(input: Any, target: Any, reduction: str = "mean") -> Value:
    """Minus the log-probability of the right class. input: f32[N, C] log-probabilities; target: integer [N]
    class indices."""
    x, t = as_value(input), as_value(target)
    _check_classes("nll_loss", x, t)
    return neg(_reduced("nll_loss", pick(x, t), reduction))


@torch_lacks(weight=None, size_average=None, ignore_index=-100, reduce=None, label_smoothing=0.0)
def cross_entropy(input: Any, target: Any, reduction: str = "mean") -> Value:
    """Cross-entropy of softmax(input) against `target`: integer class indices [N], or probabilities of the
    input's shape f32[N, C]."""
    x, t = as_value(input), as_value(target)
    if t.dtype.kind == "f":
        if x.ndim not in (1, 2) or t.shape != x.shape:
            raise refusal(
                "cross_entropy", [x, t], "probabilities must have the shape of the scores, [N, C] or [C]"
            )
        return _reduced("cross_entropy", neg(sum(t * log_softmax(x, -1), -1)), reduction)
    _check_classes("cross_entropy", x, t)
    z, axis = _shifted("cross_entropy", x, -1)
    return _reduced("cross_entropy", log(sum(exp(z), axis)) - pick(z, t), reduction)


def _check_same(name: str, x: Value, target: Value) -> None:
    if x.shape != target.shape:
        raise refusal(name, [x, target], "input and target must have the same shape")


@torch_lacks(size_average=None, reduce=None, weight=None)
def mse_loss(input: Any, target: Any, reduction: str = "mean") -> Value:
    """(input - target)^2; both of one shape (PyTorch broadcasts them with a warning)."""
    x, t = as_value(input), as_value(target)
    _check_same("mse_loss", x, t)
    return _reduced("mse_loss", square(x - t), reduction)


def _log_or_minus_100(p: Value) -> Value:
    """max(log(p), -100), whose gradient is 0 and not NaN where p is 0."""
    positive = p > 0.0
    return maximum(where(positive, log(where(positive, p, 1.0)), -100.0), -100.0)


@torch_lacks(weight=None, size_average=None, reduce=None)
def binary_cross_entropy(input: Any, target: Any, reduction: str = "mean") -> Value:
    """-(t log(p) + (1 - t) log(1 - p)) of probabilities p; each logarithm is at least -100, as in PyTorch."""
    p, t = as_value(input), as_value(target)
    _check_same("binary_cross_entropy", p, t)
    losses = (t - 1.0) * _log_or_minus_100(1.0 - p) - t * _log_or_minus_100(p)
    return _reduced("binary_cross_entropy", losses, reduction)
