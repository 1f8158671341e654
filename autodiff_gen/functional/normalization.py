"""Normalisation with the statistics of single samples: layer, RMS, group and local response norm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import ShapeError
from ..ir.build import apply, apply_node
from ..ir.names import with_role
from ..ir.node import Value
from ..ir.types import Shape, Size, product
from .arguments import TensorLike, as_value, shape_error
from .elementwise import pow, rsqrt, square
from .joining import pad
from .pooling import avg_pool2d
from .reductions import mean
from .shapes import reshape
from .slicing import whole

__all__ = ["group_norm", "layer_norm", "local_response_norm", "rms_norm"]

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


def affine(
    name: str, x: Value, weight: TensorLike | None, bias: TensorLike | None, shape: Shape, reshaped: Shape
) -> Value:
    """x * weight + bias; either may be None. Both have `shape`, and broadcast to x after a reshape to `reshaped`."""
    for role, v, op in (("weight", weight, "mul"), ("bias", bias, "add")):
        if v is None:
            continue
        x = apply(op, x, _shaped(name, x, role, v, shape, reshaped))
    return x


def _shaped(name: str, x: Value, role: str, given: Any, shape: Shape, reshaped: Shape) -> Value:
    v = as_value(given)
    if v.shape != shape:
        raise ShapeError(f"{name}({x!r}): {role} must have the shape {list(shape)}, not {list(v.shape)}")
    return v if shape == reshaped else apply("reshape", v, shape=reshaped)


def standardized(
    name: str,
    x: Value,
    axes: tuple[int, ...],
    eps: float,
    weight: TensorLike | None = None,
    bias: TensorLike | None = None,
    shape: Shape = (),
    reshaped: Shape = (),
) -> tuple[Value, Value, Value]:
    """Three values: (x - mean) / sqrt(variance + eps) * weight + bias, the mean, and the biased variance over `axes`.

    The axes of mean and variance are kept with extent 1. Weight and bias as in `affine`; they are constant along at
    least one of the axes."""
    roles = {"weight": weight} if weight is None or bias is None else {"weight": weight, "bias": bias}
    weights = [_shaped(name, x, role, v, shape, reshaped) for role, v in roles.items() if v is not None]
    y, average, variance, _ = apply_node("standardize", x, *weights, axes=axes, eps=eps).results
    return y if len(weights) == 2 else affine(name, y, None, bias, shape, reshaped), average, variance


def layer_norm(
    input: TensorLike,
    normalized_shape: int | Sequence[int],
    weight: TensorLike | None = None,
    bias: TensorLike | None = None,
    eps: float = 1e-5,
) -> Value:
    """Ba et al. 2016: (input - mean) / sqrt(variance + eps) with the statistics over the last axes, whose extents are
    normalized_shape; then * weight + bias, both of that shape."""
    x = as_value(input)
    axes = _trailing("layer_norm", x, normalized_shape)
    shape = tuple(x.shape[i] for i in axes)
    y, *_ = standardized("layer_norm", x, axes, eps)
    return affine("layer_norm", y, weight, bias, shape, shape)


def rms_norm(
    input: TensorLike,
    normalized_shape: int | Sequence[int],
    weight: TensorLike | None = None,
    eps: float | None = None,
) -> Value:
    """Zhang and Sennrich 2019: input / sqrt(mean(input^2) + eps) over the last axes, whose extents are
    normalized_shape; then * weight, of that shape. eps: 2^-23 by default."""
    x = as_value(input)
    axes = _trailing("rms_norm", x, normalized_shape)
    shape = tuple(x.shape[i] for i in axes)
    scale = rsqrt(mean(square(x), axes, keepdim=True) + (FLOAT32_EPS if eps is None else eps))
    with_role(scale, "inv_rms")
    return affine("rms_norm", x * scale, weight, None, shape, shape)


def group_norm(
    input: TensorLike,
    num_groups: int,
    weight: TensorLike | None = None,
    bias: TensorLike | None = None,
    eps: float = 1e-5,
) -> Value:
    """Wu and He 2018: the channels of input [N, C, ...] are divided into num_groups groups, and each group of a sample
    becomes (input - mean) / sqrt(variance + eps); then * weight[C] + bias[C]."""
    x = as_value(input)
    if x.ndim < 2 or not isinstance(x.shape[1], int):
        raise ShapeError(f"group_norm({x!r}): the input must be [N, C, ...]")
    samples, channels, *space = x.shape
    if not isinstance(num_groups, int) or num_groups < 1 or channels % num_groups:
        raise ShapeError(
            f"group_norm({x!r}): {channels} channels cannot be divided into num_groups={num_groups} groups"
        )
    split: tuple[Size, ...] = (samples, num_groups, channels // num_groups, *space)
    grouped, axes, each = reshape(x, split), tuple(range(2, len(split))), (channels,)
    ones = tuple(1 for _ in space)
    if product(tuple(space)) == 1:  # no axis along which a weight is constant
        y, *_ = standardized("group_norm", grouped, axes, eps)
        return affine("group_norm", reshape(y, x.shape), weight, bias, each, (channels, *ones))
    by_group = (num_groups, channels // num_groups, *ones)
    y, *_ = standardized("group_norm", grouped, axes, eps, weight, bias, each, by_group)
    return reshape(y, x.shape)


def local_response_norm(
    input: TensorLike, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Value:
    """Krizhevsky et al. 2012, with PyTorch's mean instead of the paper's sum: input / (k + alpha * mean)^beta, where
    the mean is over the squares of `size` neighbouring channels of input [N, C, ...]; channels outside count as 0."""
    x, name = as_value(input), "local_response_norm"
    width = whole(name, x, "size", size)
    if x.ndim < 3 or width < 1:
        raise shape_error(name, [x], f"the input must be [N, C, ...], and size={size!r} at least 1")
    n, channels, *space = x.shape
    squares = reshape(square(x), (n, 1, channels, product(tuple(space))))
    squares = pad(squares, (0, 0, width // 2, (width - 1) // 2))
    average = reshape(avg_pool2d(squares, (width, 1), stride=1), x.shape)
    return x / pow(average * float(alpha) + float(k), float(beta))
