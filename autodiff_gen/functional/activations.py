"""Activation functions. `inplace` is accepted and ignored: buffer assignment decides which values are updated in
place."""

from __future__ import annotations

from typing import Any

from ..errors import ShapeError
from ..ir.build import apply
from ..ir.node import Value
from ..ir.types import plain
from .arguments import TensorLike, as_value, shape_error, torch_lacks
from .elementwise import abs, neg, sigmoid, where
from .shapes import reshape
from .slicing import chunk
from .softmax import softmax

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "logsigmoid",
    "mish",
    "prelu",
    "relu6",
    "selu",
    "silu",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "threshold",
]


def _number(name: str, argument: str, value: Any) -> float:
    value = plain(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ShapeError(f"{name}: {argument}={value!r} must be a number")
    return float(value)


def hardtanh(input: TensorLike, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Value:
    """input clamped to [min_val, max_val]; as in PyTorch, the gradient is 0 outside and at the limits."""
    low, high = _number("hardtanh", "min_val", min_val), _number("hardtanh", "max_val", max_val)
    if low > high:
        raise ShapeError(f"hardtanh: min_val={min_val} is greater than max_val={max_val}")
    return apply("hardtanh", input, min_val=low, max_val=high)


def relu6(input: TensorLike, inplace: bool = False) -> Value:
    """hardtanh with the limits 0 and 6."""
    return apply("hardtanh", input, min_val=0.0, max_val=6.0)


def leaky_relu(input: TensorLike, negative_slope: float = 0.01, inplace: bool = False) -> Value:
    """input if positive, otherwise negative_slope * input."""
    return apply("leaky_relu", input, negative_slope=_number("leaky_relu", "negative_slope", negative_slope))


def elu(input: TensorLike, alpha: float = 1.0, inplace: bool = False) -> Value:
    """input if positive, otherwise alpha * (exp(input) - 1); Clevert et al. 2016."""
    return apply("elu", input, alpha=_number("elu", "alpha", alpha))


def selu(input: TensorLike, inplace: bool = False) -> Value:
    """1.0507 * elu(input, 1.6733), the constants of Klambauer et al. 2017."""
    return apply("selu", input)


def gelu(input: TensorLike, approximate: str = "none") -> Value:
    """input * Phi(input), Phi the normal distribution function; Hendrycks and Gimpel 2016. approximate="tanh" uses
    their approximation with tanh instead of erf."""
    if approximate not in ("none", "tanh"):
        raise ShapeError(f'gelu: approximate={approximate!r}; known: "none", "tanh"')
    return apply("gelu" if approximate == "none" else "gelu_tanh", input)


def silu(input: TensorLike, inplace: bool = False) -> Value:
    """input * sigmoid(input); Elfwing et al. 2017."""
    return apply("silu", input)


def mish(input: TensorLike, inplace: bool = False) -> Value:
    """input * tanh(softplus(input)); Misra 2019."""
    return apply("mish", input)


def softplus(input: TensorLike, beta: float = 1.0, threshold: float = 20.0) -> Value:
    """log(1 + exp(beta * input)) / beta, and input where beta * input is above the threshold."""
    scale, limit = _number("softplus", "beta", beta), _number("softplus", "threshold", threshold)
    if scale == 0:
        raise ShapeError("softplus: beta must not be 0")
    x = as_value(input)
    if scale == 1:
        return apply("softplus", x, threshold=limit)
    return apply("softplus", x * scale, threshold=limit) * (1.0 / scale)


def softsign(input: TensorLike) -> Value:
    """input / (1 + |input|)."""
    return apply("softsign", input)


def hardsigmoid(input: TensorLike, inplace: bool = False) -> Value:
    """(input + 3) / 6 clamped to [0, 1]; as in PyTorch, the gradient at both limits is 0."""
    return apply("hardsigmoid", input)


def hardswish(input: TensorLike, inplace: bool = False) -> Value:
    """input * hardsigmoid(input); Howard et al. 2019."""
    return apply("hardswish", input)


def logsigmoid(input: TensorLike) -> Value:
    """log(sigmoid(input)), without cancellation."""
    return apply("logsigmoid", input)


def celu(input: TensorLike, alpha: float = 1.0, inplace: bool = False) -> Value:
    """input if positive, otherwise alpha * (exp(input / alpha) - 1); Barron 2017."""
    x, a = as_value(input), _number("celu", "alpha", alpha)
    if a == 0:
        raise ShapeError("celu: alpha must not be 0")
    return apply("elu", x, alpha=1.0) if a == 1 else apply("celu", x, alpha=a, inverse=1.0 / a)


def glu(input: TensorLike, dim: int = -1) -> Value:
    """a * sigmoid(b) with the halves a and b of the input along `dim`; Dauphin et al. 2017."""
    x = as_value(input)
    halves = chunk(x, 2, dim)
    if len(halves) != 2 or halves[0].shape != halves[1].shape:
        raise shape_error("glu", [x], f"the extent of dim={dim} must be even")
    return halves[0] * sigmoid(halves[1])


def prelu(input: TensorLike, weight: TensorLike) -> Value:
    """input if positive, otherwise weight * input; He et al. 2015. weight: [1] or a scalar, or [C] for input
    [N, C, ...]."""
    x, w = as_value(input), as_value(weight)
    channels = x.shape[1] if x.ndim > 1 else 1
    if w.shape not in ((), (1,), (channels,)):
        raise shape_error("prelu", [x, w], f"the weight must have the shape [1] or [{channels}]")
    if w.shape == (channels,) and x.ndim > 2:
        w = reshape(w, (channels, *(1,) * (x.ndim - 2)))
    return where(x > 0.0, x, w * x) if x.ndim else where(x > 0.0, x, reshape(w, ()) * x)


def threshold(input: TensorLike, threshold: float, value: float, inplace: bool = False) -> Value:
    """input if greater than the threshold, otherwise the number `value`."""
    return where(
        as_value(input) > _number("threshold", "threshold", threshold),
        input,
        _number("threshold", "value", value),
    )


def hardshrink(input: TensorLike, lambd: float = 0.5) -> Value:
    """0 where |input| is at most lambd, otherwise input."""
    x = as_value(input)
    return where(abs(x) <= _number("hardshrink", "lambd", lambd), 0.0, x)


def softshrink(input: TensorLike, lambd: float = 0.5) -> Value:
    """0 where |input| is at most lambd, otherwise input moved by lambd towards 0."""
    x, limit = as_value(input), _number("softshrink", "lambd", lambd)
    return where(x > limit, x - limit, where(x < -limit, x + limit, 0.0))


@torch_lacks(dtype=None)
def softmin(input: TensorLike, dim: int) -> Value:
    """softmax(-input) along `dim`."""
    return softmax(neg(input), dim)
