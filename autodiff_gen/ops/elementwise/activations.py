"""Activation functions. If the result determines the gradient, the gradient is computed from it, so that the operand
need not be stored; otherwise from the operand (silu: from both)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.build import apply
from ...ir.names import with_role
from ...ir.node import Sample, Value, define
from ...ir.op_kinds import ADD, MUL, SELECT, UNARY, Attrs, Composite, Elementwise
from ...ir.types import Type
from ..support import ONES, by_operand, floating, simple, within
from .functions import TWO_OVER_ROOT_PI, erf, sigmoid

SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946
ROOT_HALF = 0.5**0.5


def _float(x: Type, **_: float) -> Type:
    return floating(x)


def _rows(attrs: Attrs, reach: float = 2.0) -> tuple[Sample, ...]:
    return tuple(Sample(s.inputs, attrs, (-reach, reach)) for s in ONES)


def _times(c: str, factor: Callable[[Value], Value]) -> Elementwise:
    """The lowering of x * factor(x)."""
    return Elementwise(
        c, MUL, UNARY, calls=True, expand=lambda operands, _: [operands[0] * factor(operands[0])]
    )


def _between(y: Value, low: float, high: float, dy: Value) -> Value:
    """dy where low < y < high or where y is NaN, otherwise 0."""
    return apply("where", y <= low, 0.0, apply("where", y >= high, 0.0, dy))


hardtanh = define(
    "hardtanh",  # x between min_val and max_val; the gradient at either is 0
    infer=_float,
    ref=lambda x, *, min_val, max_val: np.minimum(np.maximum(x, min_val), max_val),
    vjp=by_operand(lambda dy, x, y, attrs: _between(y, attrs["min_val"], attrs["max_val"], dy)),
    lower=Elementwise(  # compares as the gradient's mask does: together they take two comparisons, not four
        "{0} <= {min_val} ? {min_val} : {0} >= {max_val} ? {max_val} : {0}", SELECT, ADD, True
    ),
    samples=(*_rows({"min_val": -1.0, "max_val": 1.0}), *_rows({"min_val": 0.0, "max_val": 6.0}, 9.0)),
    torch="torch.nn.functional.hardtanh(a, min_val, max_val)",
    monotone=lambda attrs: bool(attrs["min_val"] <= attrs["max_val"]),
    limits=lambda attrs: (attrs["min_val"], attrs["max_val"]),
)


def _constant_unless(mask: Value, y: Value) -> Value:
    """y, through which no gradient flows where the mask is False: second derivatives at a kink of the first derivative
    are 0, as in PyTorch. In C this is y."""
    return apply("where", mask, y, apply("detach", y))


def _leaky_gradient(dy: Value, x: Value, y: Value, attrs: Attrs) -> Value:
    slope = attrs["negative_slope"]
    return apply("where", (y if slope >= 0 else x) > 0.0, dy, dy * slope)


leaky_relu = define(
    "leaky_relu",  # x, or negative_slope * x where x <= 0
    infer=_float,
    ref=lambda x, *, negative_slope: np.where(x > 0, x, x * negative_slope),
    vjp=by_operand(_leaky_gradient),
    lower=Elementwise("{0} > 0.0f ? {0} : {0} * {negative_slope}", SELECT, UNARY, cheap=True),
    samples=(*_rows({"negative_slope": 0.125}), *_rows({"negative_slope": -0.5})),
    torch="torch.nn.functional.leaky_relu(a, negative_slope)",
    monotone=lambda attrs: bool(attrs["negative_slope"] >= 0),
)


def _elu_gradient(dy: Value, x: Value, y: Value, attrs: Attrs) -> Value:
    alpha = attrs["alpha"]
    signed = y if alpha >= 0 else x
    return apply("where", signed > 0.0, dy, dy * (_constant_unless(signed < 0.0, y) + alpha))


elu = define(
    "elu",  # x, or alpha (e^x - 1) where x <= 0
    infer=_float,
    ref=lambda x, *, alpha: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))),
    vjp=by_operand(_elu_gradient),
    lower=Elementwise("{0} > 0.0f ? {0} : {alpha} * ag_expm1f({0})", SELECT, ADD, calls=True),
    samples=(*_rows({"alpha": 1.0}), *_rows({"alpha": -0.5})),
    torch="torch.nn.functional.elu(a, alpha)",
)

celu = define(
    "celu",  # x, or alpha (e^(x/alpha) - 1) where x <= 0; inverse: 1 / alpha
    infer=_float,
    ref=lambda x, *, alpha, inverse: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) * inverse)),
    vjp=by_operand(
        lambda dy, x, y, attrs: apply(
            "where", y > 0.0, dy, dy * (_constant_unless(y < 0.0, y) * attrs["inverse"] + 1.0)
        )
    ),
    lower=Elementwise("{0} > 0.0f ? {0} : {alpha} * ag_expm1f({0} * {inverse})", SELECT, ADD, calls=True),
    samples=(*_rows({"alpha": 0.5, "inverse": 2.0}), *_rows({"alpha": -2.0, "inverse": -0.5})),
    torch="torch.nn.functional.celu(a, alpha)",
)

selu = define(
    "selu",  # SELU_SCALE * elu(x, SELU_ALPHA)
    infer=floating,
    ref=lambda x: SELU_SCALE * np.where(x > 0, x, SELU_ALPHA * np.expm1(np.minimum(x, 0))),
    vjp=simple(
        lambda dy, x, y: apply(
            "where", y > 0.0, dy * SELU_SCALE, dy * (_constant_unless(y < 0.0, y) + SELU_SCALE * SELU_ALPHA)
        )
    ),
    lower=Elementwise(
        "{0} > 0.0f ? 1.050701f * {0} : 1.7580993f * ag_expm1f({0})", SELECT, UNARY, calls=True
    ),
    samples=ONES,
    torch="torch.nn.functional.selu(a)",
)


def _normal_distribution(x: Value) -> Value:
    return 0.5 * (apply("erf", x * ROOT_HALF) + 1.0)


def _gelu_gradient(dy: Value, x: Value) -> Value:
    """dy (Phi(x) + x phi(x)), with the normal distribution function and density."""
    u = x * ROOT_HALF
    density = apply("exp", -apply("square", u)) * (0.5 * ROOT_HALF * TWO_OVER_ROOT_PI)
    return dy * with_role(_normal_distribution(x) + x * density, "slope")


gelu = define(
    "gelu",  # x Phi(x), with the normal distribution function
    infer=floating,
    ref=lambda x: x * (0.5 * (1 + erf.ref(x * ROOT_HALF))),
    vjp=simple(lambda dy, x, y: _gelu_gradient(dy, x)),
    lower=_times("{0} * (0.5f * (1.0f + ag_erff({0} * 0.70710677f)))", _normal_distribution),
    samples=ONES,
    torch="torch.nn.functional.gelu(a)",
)

# gelu_tanh(x) = x/2 (1 + tanh(x (A + B x^2)))
GELU_A = ROOT_HALF * TWO_OVER_ROOT_PI
GELU_B = 0.044715 * GELU_A


def _gelu_tanh(x: Any) -> Any:
    return x * (0.5 * (1 + np.tanh(x * (GELU_A + GELU_B * (x * x)))))


def _gelu_tanh_function(x: Value) -> Value:
    return apply("tanh", x * (GELU_B * apply("square", x) + GELU_A))


def _gelu_tanh_gradient(dy: Value, x: Value) -> Value:
    z, t = apply("square", x), _gelu_tanh_function(x)
    inner = (0.5 * x) * (1.0 - apply("square", t)) * (3.0 * GELU_B * z + GELU_A)
    return dy * with_role(0.5 * (t + 1.0) + inner, "slope")


gelu_tanh = define(
    "gelu_tanh",  # the tanh approximation of gelu
    infer=floating,
    ref=_gelu_tanh,
    vjp=simple(lambda dy, x, y: _gelu_tanh_gradient(dy, x)),
    lower=_times(
        "{0} * (0.5f * (1.0f + ag_tanhf({0} * (0.7978846f + 0.035677407f * ({0} * {0})))))",
        lambda x: 0.5 * (_gelu_tanh_function(x) + 1.0),
    ),
    samples=ONES,
    torch="torch.nn.functional.gelu(a, approximate='tanh')",
)


def _silu_gradient(dy: Value, x: Value, y: Value) -> Value:
    s = apply("sigmoid", x)
    return dy * with_role(y * (1.0 - s) + s, "slope")


silu = define(
    "silu",  # x sigmoid(x)
    infer=floating,
    ref=lambda x: x * sigmoid.ref(x),
    vjp=simple(_silu_gradient),
    lower=_times("{0} * ag_sigmoidf({0})", lambda x: apply("sigmoid", x)),
    samples=ONES,
    torch="torch.nn.functional.silu(a)",
)


def _softplus_gradient(dy: Value, x: Value, y: Value, attrs: Attrs) -> Value:
    """dy sigmoid(x), and dy above the threshold. It is computed from the result if the result has no step at the
    threshold, that is, if log(1 + e^threshold) = threshold in float32."""
    threshold = attrs["threshold"]
    if np.float32(np.exp(-threshold)) + np.float32(threshold) == np.float32(threshold):
        return apply("where", y > threshold, dy, -(dy * apply("expm1", -y)))
    return apply("where", x > threshold, dy, dy * apply("sigmoid", _constant_unless(x < threshold, x)))


softplus = define(
    "softplus",  # log(1 + e^x), and x above the threshold
    infer=_float,
    ref=lambda x, *, threshold: np.where(x > threshold, x, np.log1p(np.exp(x))),
    vjp=by_operand(_softplus_gradient),
    lower=Elementwise("{0} > {threshold} ? {0} : ag_log1pf(ag_expf({0}))", SELECT, ADD, calls=True),
    samples=(*_rows({"threshold": 20.0}, 4.0), *_rows({"threshold": 1.0})),
    torch="torch.nn.functional.softplus(a, threshold=threshold)",
)

logsigmoid = define(
    "logsigmoid",  # log(sigmoid(x)), without cancellation
    infer=floating,
    ref=lambda x: np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x))),
    vjp=simple(lambda dy, x, y: -(dy * apply("expm1", y))),
    lower=Elementwise("({0} < 0.0f ? {0} : 0.0f) - ag_log1pf(ag_expf(-fabsf({0})))", ADD, ADD, calls=True),
    samples=ONES,
    torch="torch.nn.functional.logsigmoid(a)",
)


def _mish_parts(x: Value) -> tuple[Value, Value, Value]:
    """e^x, 1 / ((1 + e^x)^2 + 1), and tanh(log(1 + e^x)), which is 1 above 20."""
    power = apply("exp", apply("where", x > 20.0, 20.0, x))
    product = power * (power + 2.0)
    inverse = 1.0 / (product + 2.0)
    return power, inverse, product * inverse


def _mish_gradient(dy: Value, x: Value) -> Value:
    power, inverse, t = _mish_parts(x)
    return dy * (t + x * (4.0 * power * (power + 1.0) * inverse * inverse))


mish = define(
    "mish",  # x tanh(log(1 + e^x))
    infer=floating,
    ref=lambda x: x * np.tanh(np.log1p(np.exp(x))),
    vjp=simple(lambda dy, x, y: _mish_gradient(dy, x)),
    lower=Composite(lambda operands, _: [operands[0] * _mish_parts(operands[0])[2]], elementwise=True),
    samples=ONES,
    torch="torch.nn.functional.mish(a)",
)

softsign = define(
    "softsign",  # x / (1 + |x|)
    infer=floating,
    ref=lambda x: x / (1 + np.abs(x)),
    vjp=simple(lambda dy, x, y: dy / apply("square", apply("abs", x) + 1.0)),
    lower=Elementwise("{0} / (1.0f + fabsf({0}))", MUL, UNARY),
    samples=ONES,
    torch="torch.nn.functional.softsign(a)",
)

hardsigmoid = define(
    "hardsigmoid",  # (x + 3) / 6 between 0 and 1
    infer=floating,
    ref=lambda x: np.minimum(np.maximum(x + 3, 0), 6) / 6,
    vjp=simple(lambda dy, x, y: _between(y, 0.0, 1.0, dy * (1.0 / 6.0))),
    lower=Elementwise(
        "{0} <= -3.0f ? 0.0f : {0} >= 3.0f ? 1.0f : ({0} + 3.0f) * 0.16666667f", SELECT, ADD, cheap=True
    ),
    samples=within(-5.0, 5.0, ONES),
    torch="torch.nn.functional.relu6(a + 3) / 6",  # its hardsigmoid cannot be differentiated twice
)


def _hardswish_gradient(dy: Value, x: Value) -> Value:
    slope = x * (1.0 / 3.0) + 0.5
    return apply("where", x <= -3.0, 0.0, apply("where", x < 3.0, dy * slope, dy))


hardswish = define(
    "hardswish",  # x hardsigmoid(x)
    infer=floating,
    ref=lambda x: x * hardsigmoid.ref(x),
    vjp=simple(lambda dy, x, y: _hardswish_gradient(dy, x)),
    lower=Elementwise(
        "{0} * ({0} <= -3.0f ? 0.0f : {0} >= 3.0f ? 1.0f : ({0} + 3.0f) * 0.16666667f)", MUL, UNARY
    ),
    samples=within(-5.0, 5.0, ONES),
    torch="torch.nn.functional.hardswish(a)",
)
