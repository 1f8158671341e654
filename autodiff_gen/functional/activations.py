"""Activation functions. `inplace` is accepted and ignored: buffer assignment decides what is updated in place."""

from __future__ import annotations

from typing import Any

from ..errors import ShapeError
from ..ir.build import apply
from ..ir.node import Value
from ..ir.types import plain
from .arguments import as_value

__all__ = [
    "elu",
    "gelu",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "logsigmoid",
    "mish",
    "relu6",
    "selu",
    "silu",
    "softplus",
    "softsign",
]


def _number(name: str, argument: str, value: Any) -> float:
    value = plain(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ShapeError(f"{name}: {argument}={value!r} must be a number")
    return float(value)


def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Value:
    """input clamped to [min_val, max_val]; the gradient is 0 outside and at the limits."""
    low, high = _number("hardtanh", "min_val", min_val), _number("hardtanh", "max_val", max_val)
    if low > high:
        raise ShapeError(f"hardtanh: min_val={min_val} is greater than max_val={max_val}")
    return apply("hardtanh", input, min_val=low, max_val=high)


def relu6(input: Any, inplace: bool = False) -> Value:
    """input clamped to [0, 6]."""
    return apply("hardtanh", input, min_val=0.0, max_val=6.0)


def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Value:
    """input if positive, otherwise negative_slope * input."""
    return apply("leaky_relu", input, negative_slope=_number("leaky_relu", "negative_slope", negative_slope))


def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Value:
    """input if positive, otherwise alpha * (exp(input) - 1); Clevert et al. 2016."""
    return apply("elu", input, alpha=_number("elu", "alpha", alpha))


def selu(input: Any, inplace: bool = False) -> Value:
    """1.0507 * elu(input, 1.6733), the constants of Klambauer et al. 2017."""
    return apply("selu", input)


def gelu(input: Any, approximate: str = "none") -> Value:
    """input * Phi(input), Phi the normal distribution function; approximate="tanh" avoids erf. Hendrycks and Gimpel
    2016."""
    if approximate not in ("none", "tanh"):
        raise ShapeError(f'gelu: approximate={approximate!r}; known: "none", "tanh"')
    return apply("gelu" if approximate == "none" else "gelu_tanh", input)


def silu(input: Any, inplace: bool = False) -> Value:
    """input * sigmoid(input)."""
    return apply("silu", input)


def mish(input: Any, inplace: bool = False) -> Value:
    """input * tanh(softplus(input))."""
    return apply("mish", input)


def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Value:
    """log(1 + exp(beta * input)) / beta, and input where beta * input is above the threshold."""
    scale, limit = _number("softplus", "beta", beta), _number("softplus", "threshold", threshold)
    if scale == 0:
        raise ShapeError("softplus: beta must not be 0")
    x = as_value(input)
    if scale == 1:
        return apply("softplus", x, threshold=limit)
    return apply("softplus", x * scale, threshold=limit) * (1.0 / scale)


def softsign(input: Any) -> Value:
    """input / (1 + |input|)."""
    return apply("softsign", input)


def hardsigmoid(input: Any, inplace: bool = False) -> Value:
    """(input + 3) / 6 clamped to [0, 1]; the gradient at both limits is 0."""
    return apply("hardsigmoid", input)


def hardswish(input: Any, inplace: bool = False) -> Value:
    """input * hardsigmoid(input)."""
    return apply("hardswish", input)


def logsigmoid(input: Any) -> Value:
    """log(sigmoid(input)), without cancellation."""
    return apply("logsigmoid", input)
