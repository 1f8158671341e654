"""Normalisation with the statistics of single samples: layer, RMS and group norm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import ShapeError
from ..ir.build import apply
from ..ir.names import with_role
from ..ir.node import Value
from ..ir.types import Shape, Size
from .arguments import as_value
from .elementwise import rsqrt, square
from .reductions import mean
from .shapes import reshape

__all__ = ["group_norm", "layer_norm", "rms_norm"]

FLOAT32_EPS = 2.0**-23  # torch.finfo(torch.float32).eps, the default of rms_norm


def _trailing(name: str, x: Value, normalized_shape: int | Sequence[int]) -> tuple[int, ...]:
    """The last axes, whose extents must be normalized_shape. Raises ShapeError otherwise."""
    wanted = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    axes = tuple(range(x.ndim - len(wanted), x.ndim))
    if not wanted or len(wanted) > x.ndim or tuple(x.shape[i] for i in axes) != wanted:
        raise ShapeError(
            f"{name}({x!r}): normalized_shape={list(wanted)} must be the last extents of the input"
        )
    return axes


def affine(name: str, x: Value, weight: Any, bias: Any, shape: Shape, reshaped: Shape) -> Value:
    """x * weight + bias, each if given; both have `shape` and broadcast to x as `reshaped`."""
    for role, v, op in (("weight", weight, "mul"), ("bias", bias, "add")):
        if v is None:
            continue
        v = as_value(v)
        if v.shape != shape:
            raise ShapeError(f"{name}({x!r}): {role} must have the shape {list(shape)}, not {list(v.shape)}")
        x = apply(op, x, v if shape == reshaped else apply("reshape", v, shape=reshaped))
    return x


def _standardised(x: Value, axes: tuple[int, ...], eps: float) -> Value:
    """(x - mean) / sqrt(variance + eps) over the axes, with the biased variance."""
    centred, _, variance = moments(x, axes)
    return normalized(centred, variance, eps)


def normalized(centred: Value, variance: Value, eps: float) -> Value:
    """What is centred, with the standard deviation 1."""
    return with_role(centred * with_role(rsqrt(variance + eps), "inv_std"), "normalized")


def moments(x: Value, axes: tuple[int, ...]) -> tuple[Value, Value, Value]:
    """x - mean, the mean, and the biased variance over the axes, which are kept with extent 1."""
    average = with_role(mean(x, axes, keepdim=True), "mean")
    centred = with_role(x - average, "centered")
    return centred, average, with_role(mean(square(centred), axes, keepdim=True), "var")


def layer_norm(
    input: Any, normalized_shape: int | Sequence[int], weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Value:
    """Ba et al. 2016: each sample standardised over its last axes (normalized_shape), then * weight + bias, both of
    that shape."""
    x = as_value(input)
    axes = _trailing("layer_norm", x, normalized_shape)
    shape = tuple(x.shape[i] for i in axes)
    return affine("layer_norm", _standardised(x, axes, eps), weight, bias, shape, shape)


def rms_norm(
    input: Any, normalized_shape: int | Sequence[int], weight: Any = None, eps: float | None = None
) -> Value:
    """Zhang and Sennrich 2019: x / sqrt(mean(x^2) + eps) over the last axes (normalized_shape), then * weight."""
    x = as_value(input)
    axes = _trailing("rms_norm", x, normalized_shape)
    shape = tuple(x.shape[i] for i in axes)
    scale = rsqrt(mean(square(x), axes, keepdim=True) + (FLOAT32_EPS if eps is None else eps))
    with_role(scale, "inv_rms")
    return affine("rms_norm", x * scale, weight, None, shape, shape)


def group_norm(input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Value:
    """Wu and He 2018: the channels of input [N, C, ...] in num_groups groups, each standardised over its channels and
    spatial axes, then * weight[C] + bias[C]."""
    x = as_value(input)
    if x.ndim < 2 or not isinstance(x.shape[1], int):
        raise ShapeError(f"group_norm({x!r}): the input must be [N, C, ...]")
    samples, channels, *space = x.shape
    if not isinstance(num_groups, int) or num_groups < 1 or channels % num_groups:
        raise ShapeError(
            f"group_norm({x!r}): {channels} channels cannot be divided into num_groups={num_groups} groups"
        )
    split: tuple[Size, ...] = (samples, num_groups, channels // num_groups, *space)
    standard = _standardised(reshape(x, split), tuple(range(2, len(split))), eps)
    broadcast = (channels, *(1 for _ in space))
    return affine("group_norm", reshape(standard, x.shape), weight, bias, (channels,), broadcast)
