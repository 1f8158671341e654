"""Normalisation with running statistics: batch norm and instance norm."""

from __future__ import annotations

from typing import Any

from ..errors import ShapeError
from ..ir.build import apply
from ..ir.names import with_role
from ..ir.node import STATE, Value
from ..ir.types import Dim, Shape, Size, product
from .arguments import TensorLike, as_value
from .elementwise import reciprocal, sqrt
from .modes import by_mode, with_updates
from .normalization import affine, standardized
from .reductions import mean
from .shapes import reshape

__all__ = ["batch_norm", "instance_norm"]


def batch_norm(
    input: TensorLike,
    running_mean: TensorLike | None = None,
    running_var: TensorLike | None = None,
    weight: TensorLike | None = None,
    bias: TensorLike | None = None,
    training: bool = False,
    momentum: Any = 0.1,
    eps: float = 1e-5,
) -> Value:
    """Ioffe and Szegedy 2015, as torch.nn.functional.batch_norm: (input - mean) / sqrt(variance + eps) for each channel
    of input [N, C, ...], then * weight[C] + bias[C].

    training=True: in training mode, the mean and the biased variance of the batch are used. The buffers running_mean[C]
    and running_var[C] are updated to (1 - momentum) * old + momentum * new, new being the mean and the unbiased
    variance. In evaluation mode, the running statistics are used. training=False: the running statistics are used in
    both modes. Without running statistics, the statistics of the batch are used in both modes.

    The statistics of a batch need more than one value per channel: if that depends on n, the generated function rejects
    n = 1.
    """
    x = as_value(input)
    if momentum is None:
        raise ShapeError(
            f"batch_norm({x!r}): momentum=None averages over all batches, which nn.BatchNorm1d and nn.BatchNorm2d do"
        )
    channels = _channels("batch_norm", x, 2)
    running = _running("batch_norm", x, running_mean, running_var, channels)
    axes = (0, *range(2, x.ndim))
    broadcast = (channels, *(1 for _ in x.shape[2:]))
    if running is not None:
        fixed = _scaled("batch_norm", x, *running, weight, bias, broadcast, eps)
        if not training:
            return fixed
    count = product(tuple(x.shape[i] for i in axes))
    if count == 1:
        raise ShapeError(f"batch_norm({x!r}): the batch statistics need more than one value per channel")
    least_n = 2 if isinstance(count, Dim) and count.coef == 1 else 1
    y, average, variance = standardized("batch_norm", x, axes, eps, weight, bias, (channels,), broadcast)
    if running is None:
        return with_updates(y, {}, least_n)
    flat = (channels,)
    updates = _running_updates(running, reshape(average, flat), reshape(variance, flat), count, momentum)
    return by_mode(with_updates(y, updates, least_n), fixed)


def instance_norm(
    input: TensorLike,
    running_mean: TensorLike | None = None,
    running_var: TensorLike | None = None,
    weight: TensorLike | None = None,
    bias: TensorLike | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Value:
    """Ulyanov et al. 2016: (input - mean) / sqrt(variance + eps) for each channel of each sample of input [N, C, ...],
    then * weight[C] + bias[C].

    Running statistics [C], if given, are averages of the samples' statistics. With use_input_stats they are updated in
    training mode as in batch_norm, and used in evaluation mode; without it they are used in both modes.
    """
    x = as_value(input)
    channels = _channels("instance_norm", x, 3)
    running = _running("instance_norm", x, running_mean, running_var, channels)
    axes = tuple(range(2, x.ndim))
    broadcast = (channels, *(1 for _ in axes))
    if running is not None:
        fixed = _scaled("instance_norm", x, *running, weight, bias, broadcast, eps)
        if not use_input_stats:
            return fixed
    elif not use_input_stats:
        raise ShapeError(f"instance_norm({x!r}): use_input_stats=False needs running statistics")
    count = product(x.shape[2:])
    if count == 1:
        raise ShapeError(f"instance_norm({x!r}): the statistics need more than one value per channel")
    y, average, variance = standardized("instance_norm", x, axes, eps, weight, bias, (channels,), broadcast)
    if running is None:
        return y
    per_sample = tuple(x.shape[:2])
    of_batch = [mean(reshape(v, per_sample), 0) for v in (average, variance)]
    updates = _running_updates(running, of_batch[0], of_batch[1], count, momentum)
    return by_mode(with_updates(y, updates), fixed)


def _channels(name: str, x: Value, least: int) -> int:
    if x.ndim < least or not isinstance(x.shape[1], int):
        shape = "[N, C, ...]" if least == 2 else "[N, C, ...] with at least one spatial axis"
        raise ShapeError(f"{name}({x!r}): the input must be {shape}")
    return x.shape[1]


def _running(name: str, x: Value, mean_: Any, var: Any, channels: int) -> tuple[Value, Value] | None:
    if mean_ is None and var is None:
        return None
    if mean_ is None or var is None:
        raise ShapeError(f"{name}({x!r}): give running_mean and running_var both, or neither")
    running = as_value(mean_), as_value(var)
    for role, v in zip(("running_mean", "running_var"), running, strict=True):
        if v.shape != (channels,):
            raise ShapeError(f"{name}({x!r}): {role} must have the shape [{channels}], not {list(v.shape)}")
    return running


def _running_updates(
    running: tuple[Value, Value], average: Value, variance: Value, count: Size, momentum: Any
) -> dict[Value, Value]:
    """The running statistics after this batch of `count` values per channel."""
    if isinstance(count, Dim):
        n = apply("extent", extent=count)
        unbiased = variance * with_role(n / (n - 1.0), "unbias")
    else:
        unbiased = variance * (count / (count - 1.0))
    for v in running:
        if v.node.op is not STATE:
            raise ShapeError(
                f"running statistics are updated in training, so they must be buffers, not {v!r}"
            )
    keep = 1.0 - momentum
    old_mean, old_var = running
    return {
        old_mean: old_mean * keep + average * momentum,
        old_var: old_var * keep + unbiased * momentum,
    }


def _scaled(
    name: str, x: Value, mean_: Value, var: Value, weight: Any, bias: Any, broadcast: Shape, eps: float
) -> Value:
    """x * scale + shift, with a scale and a shift per channel computed from the running statistics."""
    (channels, *_) = broadcast
    scale = affine(name, reciprocal(sqrt(var + eps)), weight, None, (channels,), (channels,))
    shift = affine(name, -(mean_ * scale), None, bias, (channels,), (channels,))
    with_role(scale, "scale"), with_role(shift, "shift")
    return x * reshape(scale, broadcast) + reshape(shift, broadcast)
