"""Standardisation over axes. Its gradient computes two sums over the elements in one pass, as PyTorch's
native_batch_norm_backward does.

It is one op until the gradients are known; then the pass expand_composites replaces it by elementwise ops and sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...ir.build import apply, constant
from ...ir.names import with_role
from ...ir.node import OptionalValues, Sample, Value, Values, Wanted, define
from ...ir.op_kinds import Attrs, Composite
from ...ir.types import Dim, Shape, Type, broadcast, normalise_axes, product
from ..support import floating, sum_to
from .reductions import reduced


def _type(*operands: Type, axes: tuple[int, ...], eps: float) -> tuple[Type, ...]:
    x = operands[0]
    floating(*operands)
    statistic = Type(x.dtype, reduced(x.shape, normalise_axes(axes, len(x.shape)), True))
    for weight in operands[1:]:
        if broadcast(weight.shape, x.shape) != x.shape:
            raise ShapeError(f"weight and bias must broadcast to {x}")
    if operands[1:] and _varied(x.shape, axes, operands[1:]) == normalise_axes(axes, len(x.shape)):
        raise ShapeError("weight and bias must be the same along one of the axes")
    return x, statistic, statistic, statistic


def _varied(shape: Shape, axes: tuple[int, ...], weights: Sequence[Type]) -> tuple[int, ...]:
    """The axes along which a weight varies."""
    rank = len(shape)
    return tuple(
        k
        for k in normalise_axes(axes, rank)
        if any(len(w.shape) >= rank - k and w.shape[k - rank] != 1 for w in weights)
    )


def _ref(x: Any, weight: Any = 1, bias: Any = 0, *, axes: tuple[int, ...], eps: float) -> tuple[Any, ...]:
    mean, var = x.mean(axis=axes, keepdims=True), x.var(axis=axes, keepdims=True)
    inv_std = 1 / np.sqrt(var + x.dtype.type(eps))
    return (x - mean) * (inv_std * weight) + bias, mean, var, inv_std


def _inv_count(x: Value, axes: Sequence[int]) -> Value:
    """1 / the number of elements from which a statistic is computed."""
    count = product(tuple(x.type.shape[i] for i in axes))
    if isinstance(count, Dim):
        return with_role(1.0 / apply("extent", extent=count), "inv_count")
    return with_role(constant(1.0 / count, x.type.dtype), "inv_count")


def _first(x: Value, axes: Sequence[int]) -> Value:
    """The first element along the axes, which are kept with extent 1."""
    shape, rank = reduced(x.type.shape, axes, True), x.ndim
    return apply("slice", x, shape=shape, starts=(0,) * rank, steps=(1,) * rank)


def _sum(x: Value, axes: Sequence[int]) -> Value:
    """The sum over the axes, which are kept with extent 1. It consists of the same nodes as the gradient of a bias, so
    that both can be merged."""
    if not axes:
        return x
    total = apply("sum", x, axes=tuple(axes), keepdim=False)
    return apply("reshape", total, shape=reduced(x.type.shape, axes, True))


@dataclass(frozen=True)
class _Loops:
    """Helpers for the loops over the elements of x and for the sums over `axes`. Weights vary along the axes in
    `varied`, so sums over the other axes come first.

    In a group normalisation of images whose channels are the last axis, the last axis is summed but the axis before it
    is not. The elements of a group are then not contiguous: loops treat both axes as one (`merged`), and sums over the
    last axis come last."""

    x: Value
    axes: tuple[int, ...]
    varied: tuple[int, ...]

    @property
    def merged(self) -> bool:
        """Whether loops treat the last two axes as one."""
        last = self.x.ndim - 1
        fixed = all(isinstance(d, int) for d in self.x.type.shape[-2:])
        return last in self.axes and last - 1 not in self.axes and len(self.axes) > 1 and fixed

    @property
    def inner(self) -> tuple[int, ...]:
        """The axes that are summed last."""
        return tuple(k for k in self.axes if k in self.varied or (self.merged and k == self.x.ndim - 1))

    def _flat(self, shape: Shape) -> Shape:
        return (*shape[:-2], product(shape[-2:])) if self.merged else shape

    def flat(self, v: Value) -> Value:
        """A value of x's shape, with merged axes."""
        return apply("reshape", v, shape=self._flat(v.type.shape)) if self.merged else v

    def whole(self, v: Value) -> Value:
        """The inverse of `flat`."""
        return apply("reshape", v, shape=self.x.type.shape) if self.merged else v

    def each(self, v: Value) -> Value:
        """A statistic, or a value for each weight, with axes that broadcast to `flat` values."""
        if not self.merged:
            return v
        shape = (*v.type.shape[:-1], self.x.type.shape[-1])
        if v.type.shape != shape:
            v = with_role(apply("copy", apply("broadcast_to", v, shape=shape)), "by_channel")
        return apply("reshape", v, shape=self._flat(shape))

    def partial(self, v: Value) -> Value:
        """The sums of a `flat` value over all axes but the inner ones, with separate axes."""
        sums = _sum(v, tuple(k for k in self.axes if k not in self.inner))
        if not self.merged:
            return sums
        return apply("reshape", sums, shape=(*sums.type.shape[:-1], *self.x.type.shape[-2:]))

    def total(self, v: Value) -> Value:
        """The sum of a `flat` value over all axes, as a statistic."""
        return _sum(self.partial(v), self.inner)


def _scale(inv_std: Value, weights: Sequence[Value]) -> Value:
    return with_role(inv_std * weights[0], "scale") if weights else inv_std


def _expanded(operands: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    """One pass computes the sums of x - x0 and of its square, where x0 is the first element. If their means are d and
    q, the mean of x is x0 + d and the variance is q - d^2, which only rounding can make negative. With a bias the
    result is x * scale + shift, as in PyTorch: one multiply-accumulate per element."""
    x, *weights = operands
    axes = normalise_axes(attrs["axes"], len(x.type.shape))
    varied = _varied(x.type.shape, axes, [v.type for v in weights])
    loops, inv_count = _Loops(x, axes, varied), _inv_count(x, axes)
    first = with_role(_first(x, axes), "first")
    shifted = with_role(loops.flat(x) - loops.each(first), "shifted")
    offset = with_role(with_role(loops.total(shifted), "shifted_sum") * inv_count, "offset")
    mean = with_role(first + offset, "mean")
    squares = with_role(loops.total(apply("square", shifted)), "square_sum") * inv_count
    difference = with_role(squares - apply("square", offset), "raw_var")  # rounding may make it negative
    var = with_role(apply("relu", difference), "var")
    inv_std = with_role(apply("rsqrt", var + attrs["eps"]), "inv_std")
    scale = _scale(inv_std, weights)
    if len(weights) == 2:
        y = loops.flat(x) * loops.each(scale) + with_role(loops.each(weights[1] - mean * scale), "shift")
    else:
        y = with_role(loops.flat(x) - loops.each(mean), "centered") * loops.each(scale)
    return with_role(loops.whole(y), "normalized"), mean, var, inv_std


def _vjp(dys: OptionalValues, inputs: Values, outs: Values, attrs: Attrs, wanted: Wanted) -> OptionalValues:
    """Ioffe and Szegedy 2015: with s = sum(dy) and d = sum(dy * (x - mean)) over n elements,
    `dx = (dy - s / n - (x - mean) * inv_std^2 d / n) * inv_std * weight`, `dweight = d * inv_std` and `dbias = s`.

    With a weight, the terms that are equal for all elements are computed first: `dx = offset - x * slope + dy * scale`.
    A weight that varies along some of the axes multiplies the sums over the other axes, as in PyTorch's group_norm.
    Without a weight (a layer norm applies its weight to the result), x - mean is stored and read."""
    (dy, d_mean, d_var, d_inv_std), (x, *weights) = dys, inputs
    _, mean, _, inv_std = outs
    axes = normalise_axes(attrs["axes"], len(x.type.shape))
    varied = _varied(x.type.shape, axes, [v.type for v in weights])
    loops, inv_count = _Loops(x, axes, varied), _inv_count(x, axes)
    each = loops.each
    centred = with_role(loops.flat(x) - each(mean), "centered")
    dx = d_weight = d_bias = None
    if dy is not None:
        dy = loops.flat(dy)
        total, along = loops.partial(dy), loops.partial(dy * centred)
        if weights and wanted[1]:
            d_weight = sum_to(along * inv_std, weights[0].type.shape)
        if len(weights) == 2 and wanted[2]:
            d_bias = sum_to(total, weights[1].type.shape)
        scale = _scale(inv_std, weights)
        if varied:
            total, along = total * weights[0], along * weights[0]
        total, along = _sum(total, loops.inner), _sum(along, loops.inner)
        of_group = inv_std if varied else scale
        slope = with_role(along * (apply("square", inv_std) * inv_count), "slope")
        if weights:
            slope = with_role(slope * of_group, "slope")
            offset = with_role(mean * slope - total * inv_count * of_group, "offset")
            dx = each(offset) - loops.flat(x) * each(slope) + dy * each(scale)
        else:
            offset = with_role(total * inv_count, "offset")
            dx = (dy - each(offset) - centred * each(slope)) * each(scale)
    if d_inv_std is not None:
        of_var = d_inv_std * -0.5 * (apply("square", inv_std) * inv_std)
        d_var = of_var if d_var is None else d_var + of_var
    if d_var is not None:
        of_x = centred * each(d_var * (inv_count * 2.0))
        dx = of_x if dx is None else dx + of_x
    if d_mean is not None:
        of_x = apply("broadcast_to", each(d_mean * inv_count), shape=centred.type.shape)
        dx = of_x if dx is None else dx + of_x
    return [loops.whole(dx) if wanted[0] and dx is not None else None, d_weight, d_bias][: len(inputs)]


_TORCH = (
    "(lambda mean, var: ((a - mean) * (torch.rsqrt(var + eps) * (operands[1] if len(operands) > 1 else 1.0)) "
    "+ (operands[2] if len(operands) > 2 else 0.0), "
    "mean, var, torch.rsqrt(var + eps)))"
    "(torch.mean(a, dim=axes, keepdim=True), torch.var(a, dim=axes, correction=0, keepdim=True))"
)

standardize = define(
    # (x - mean) * inv_std * weight + bias, the mean, the biased variance and inv_std = 1 / sqrt(variance + eps)
    # over the axes, which the statistics keep with extent 1. The weight and the bias are constant along at least one of
    # the axes; the bias, or both, may be missing.
    "standardize",
    infer=_type,
    ref=_ref,
    vjp=_vjp,
    lower=Composite(_expanded),
    samples=(
        Sample(((3, 4),), {"axes": (1,), "eps": 1e-2}),
        Sample(((2, 3, 4), (3, 1)), {"axes": (0, 2), "eps": 1e-1}),
        Sample(((2, 3, 4), (2, 3, 1)), {"axes": (2,), "eps": 1e-1}),
        Sample(((2, 5, 3, 2),), {"axes": (1, 3), "eps": 1e-1}),
        Sample(((2, 5, 3, 2), (3, 1), (3, 1)), {"axes": (1, 3), "eps": 1e-1}),
        Sample(((2, 3, 4), (3, 1), (3, 1)), {"axes": (0, 2), "eps": 1e-1}),
        Sample(((2, 3, 4, 2), (3, 4, 1), (3, 4, 1)), {"axes": (2, 3), "eps": 1e-1}),
        Sample(((2, 5, 3, 2), (3, 2), (3, 2)), {"axes": (1, 3), "eps": 1e-1}),
    ),
    torch=_TORCH,
)
