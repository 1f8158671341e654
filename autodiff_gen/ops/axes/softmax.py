"""Softmax, whose gradient reads only its result, so that neither scores nor exponentials are stored; and log_softmax.

They are ops until the gradients are known; then the pass expand_composites replaces them by elementwise ops and sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.build import apply
from ...ir.names import with_role
from ...ir.node import Sample, Value, define
from ...ir.op_kinds import Attrs, Composite
from ...ir.types import Type
from ..support import by_operand, floating


def _type(x: Type, *, axes: tuple[int, ...]) -> Type:
    return floating(x)


def _ref(x: Any, *, axes: tuple[int, ...]) -> Any:
    e = np.exp(x - x.max(axis=axes, keepdims=True))
    return e / e.sum(axis=axes, keepdims=True)


def less_largest(x: Value, axes: Sequence[int]) -> Value:
    """x - max(x) along the axes: its exponentials cannot overflow. No gradient passes through the maximum, because it
    cancels."""
    if all(x.type.shape[i] == 1 for i in axes):
        return x - apply("detach", x)
    most = with_role(apply("amax", x, axes=tuple(axes), keepdim=True), "max")
    return with_role(x - apply("detach", most), "shifted")


def _expanded(operands: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    (x,), axes = operands, attrs["axes"]
    e = with_role(apply("exp", less_largest(x, axes)), "exp_shifted")
    total = with_role(apply("sum", e, axes=axes, keepdim=True), "exp_sum")
    return (e * with_role(1.0 / total, "inv_sum"),)


def _gradient(dy: Value, x: Value, y: Value, attrs: Attrs) -> Value:
    """dx = (dy - sum(dy * y)) * y, as in PyTorch's _softmax_backward_data."""
    along = with_role(apply("sum", dy * y, axes=attrs["axes"], keepdim=True), "along")
    return (dy - along) * y


softmax = define(
    "softmax",  # exp(a) / sum(exp(a)) along the axes
    infer=_type,
    ref=_ref,
    vjp=by_operand(_gradient),
    lower=Composite(_expanded),
    samples=(
        Sample(((3, 4),), {"axes": (1,)}),
        Sample(((2, 3, 4),), {"axes": (1,)}),
        Sample(((2, 1),), {"axes": (1,)}),
    ),
    torch="torch.softmax(a, axes[0])",
)


def _ref_log(x: Any, *, axes: tuple[int, ...]) -> Any:
    z = x - x.max(axis=axes, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=axes, keepdims=True))


def log_sum_exp(z: Value, axes: Sequence[int]) -> Value:
    """log(sum(exp(z))) along the axes, which are kept with extent 1. The exponentials of z must not overflow."""
    e = with_role(apply("exp", z), "exp_shifted")
    total = with_role(apply("sum", e, axes=tuple(axes), keepdim=True), "exp_sum")
    return with_role(apply("log", total), "log_sum")


def _expanded_log(operands: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    z = less_largest(operands[0], attrs["axes"])
    return (z - log_sum_exp(z, attrs["axes"]),)


def _log_gradient(dy: Value, x: Value, y: Value, attrs: Attrs) -> Value:
    """dx = dy - softmax(x) * sum(dy)"""
    total = with_role(apply("sum", dy, axes=attrs["axes"], keepdim=True), "total")
    return dy - apply("softmax", x, **attrs) * total


log_softmax = define(
    "log_softmax",  # log(softmax(a)) along the axes, without cancellation
    infer=_type,
    ref=_ref_log,
    vjp=by_operand(_log_gradient),
    lower=Composite(_expanded_log, is_shorthand=lambda _: True),
    samples=(
        Sample(((3, 4),), {"axes": (1,)}),
        Sample(((2, 3, 4),), {"axes": (1,)}),
        Sample(((2, 1),), {"axes": (1,)}),
    ),
    torch="torch.log_softmax(a, axes[0])",
)
