"""Normalisation with the statistics of single samples: layer, RMS and group norm."""

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
    """x * weight + bias, each if given; both have `shape` and broadcast to x as `reshaped`."""
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
    """(x - mean) / sqrt(variance + eps) over the axes, with the biased variance, * weight + bias, each if given, which
    are constant along at least one of the axes; then the mean and the variance, whose axes are kept with extent 1.
    Shapes as in `affine`."""
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
    """Ba et al. 2016: each sample standardised over its last axes (normalized_shape), then * weight + bias, both of
    that shape."""
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
    """Zhang and Sennrich 2019: x / sqrt(mean(x^2) + eps) over the last axes (normalized_shape), then * weight."""
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
    grouped, axes, each = reshape(x, split), tuple(range(2, len(split))), (channels,)
    ones = tuple(1 for _ in space)
    if product(tuple(space)) == 1:  # an element for each weight
        y, *_ = standardized("group_norm", grouped, axes, eps)
        return affine("group_norm", reshape(y, x.shape), weight, bias, each, (channels, *ones))
    by_group = (num_groups, channels // num_groups, *ones)
    y, *_ = standardized("group_norm", grouped, axes, eps, weight, bias, each, by_group)
    return reshape(y, x.shape)


def local_response_norm(
    input: TensorLike, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Value:
    """Krizhevsky et al. 2012, as in PyTorch: input [N, C, ...] / (k + alpha * mean)^beta, with the mean of the squares
    of `size` neighbouring channels; channels outside count as 0."""
    x, name = as_value(input), "local_response_norm"
    width = whole(name, x, "size", size)
    if x.ndim < 3 or width < 1:
        raise shape_error(name, [x], f"the input must be [N, C, ...], and size={size!r} at least 1")
    n, channels, *space = x.shape
    squares = reshape(square(x), (n, 1, channels, product(tuple(space))))
    squares = pad(squares, (0, 0, width // 2, (width - 1) // 2))
    average = reshape(avg_pool2d(squares, (width, 1), stride=1), x.shape)
    return x / pow(average * float(alpha) + float(k), float(beta))
