"""Functions that set the initial values of a parameter or buffer, with the names and arguments of torch.nn.init:
`nn.init.xavier_uniform_(layer.weight)`. They return the parameter. Call them before the network is called; otherwise,
and for anything but a parameter or buffer of a module, they raise ModelError.

Uniform, normal and constant values are computed on the device, as for `init`. The host computes the values of eye_,
orthogonal_ and trunc_normal_ when the model is built, and they are stored in flash.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import init
from ..errors import ModelError
from ..functional import torch_lacks
from ..ir.node import STATE, Value
from .parameter import Parameter, Stored

__all__ = [
    "calculate_gain",
    "constant_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]


def _set(name: str, tensor: Any, start: Callable[[tuple[int, ...]], Any]) -> Any:
    """Set the initial values of a parameter or a buffer. Raises ModelError for anything else."""
    stored = tensor
    if isinstance(tensor, Value) and tensor.node.op is STATE:
        stored = Stored.of_state.get(tensor.node.attrs["state"])
    if not isinstance(stored, Stored):
        raise ModelError(f"nn.init.{name}: {tensor!r} is not a parameter of a module")
    stored.load(start(stored.shape))
    return tensor


@torch_lacks(generator=None)
def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0) -> Any:
    """Uniform in [a, b)."""
    symmetric = a == -b

    def start(shape: tuple[int, ...]) -> Any:
        return init.uniform(shape, b) if symmetric else init.uniform(shape, low=a, high=b)

    return _set("uniform_", tensor, start)


@torch_lacks(generator=None)
def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0) -> Any:
    """Normal with this mean and standard deviation."""
    return _set("normal_", tensor, lambda shape: init.normal(shape, mean, std))


@torch_lacks(generator=None)
def trunc_normal_(tensor: Any, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0) -> Any:
    """Normal with this mean and standard deviation, restricted to [a, b] by rejection of the numbers outside. If both
    limits are at least 6 std away from the mean, the same as normal_."""
    if std <= 0 or (b - mean) / std < -4 or (a - mean) / std > 4 or a >= b:
        raise ModelError(f"nn.init.trunc_normal_: [{a}, {b}] holds no numbers around {mean} with std={std}")
    if (mean - a) / std >= 6 and (b - mean) / std >= 6:  # init.Normal has no numbers beyond 6 std
        return normal_(tensor, mean, std)

    def draw(shape: tuple[int, ...], rng: np.random.Generator) -> Any:
        numbers = rng.normal(mean, std, shape)
        while (wrong := (numbers < a) | (numbers > b)).any():
            numbers[wrong] = rng.normal(mean, std, int(wrong.sum()))
        return numbers

    return _set("trunc_normal_", tensor, lambda shape: init.Drawn(shape, draw))


@torch_lacks(generator=None)
def orthogonal_(tensor: Any, gain: float = 1.0) -> Any:
    """gain times a matrix with orthonormal rows or columns, as [first extent, product of the others]; Saxe et al.
    2014."""

    def draw(shape: tuple[int, ...], rng: np.random.Generator) -> Any:
        rows, columns = shape[0], math.prod(shape[1:])
        q, r = np.linalg.qr(rng.normal(size=(max(rows, columns), min(rows, columns))))
        q = q * np.sign(np.diag(r))
        return gain * (q if rows >= columns else q.T).reshape(shape)

    def start(shape: tuple[int, ...]) -> Any:
        if len(shape) < 2:
            raise ModelError(f"nn.init.orthogonal_: shape {list(shape)} needs at least two axes")
        return init.Drawn(shape, draw)

    return _set("orthogonal_", tensor, start)


def constant_(tensor: Any, val: float) -> Any:
    """All elements are `val`."""
    return _set("constant_", tensor, lambda shape: init.constant(shape, val))


def ones_(tensor: Any) -> Any:
    """All elements are 1."""
    return _set("ones_", tensor, init.ones)


def zeros_(tensor: Any) -> Any:
    """All elements are 0."""
    return _set("zeros_", tensor, init.zeros)


def eye_(tensor: Any) -> Any:
    """The identity matrix, 1 on the diagonal of a parameter with two axes."""

    def start(shape: tuple[int, ...]) -> Any:
        if len(shape) != 2:
            raise ModelError(f"nn.init.eye_: shape {list(shape)} is not two-dimensional")
        return np.eye(*shape)

    return _set("eye_", tensor, start)


@torch_lacks(generator=None)
def xavier_uniform_(tensor: Any, gain: float = 1.0) -> Any:
    """As init.xavier_uniform."""
    return _set("xavier_uniform_", tensor, lambda shape: init.xavier_uniform(shape, gain))


@torch_lacks(generator=None)
def xavier_normal_(tensor: Any, gain: float = 1.0) -> Any:
    """As init.xavier_normal."""
    return _set("xavier_normal_", tensor, lambda shape: init.xavier_normal(shape, gain))


@torch_lacks(generator=None)
def kaiming_uniform_(
    tensor: Any, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"
) -> Any:
    """As init.kaiming_uniform."""
    return _set("kaiming_uniform_", tensor, lambda shape: init.kaiming_uniform(shape, a, mode, nonlinearity))


@torch_lacks(generator=None)
def kaiming_normal_(
    tensor: Any, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"
) -> Any:
    """As init.kaiming_normal."""
    return _set("kaiming_normal_", tensor, lambda shape: init.kaiming_normal(shape, a, mode, nonlinearity))


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The recommended gain of a nonlinearity; param: the negative slope of "leaky_relu", 0.01 by default."""
    return init.gain(nonlinearity, 0.01 if param is None else param)


def _copy(tensor: Any, src: Any) -> Any:
    """Set the initial values to `src`, which broadcasts."""

    def start(shape: tuple[int, ...]) -> Any:
        return np.broadcast_to(np.asarray(src, np.float64), shape)

    return _set("copy_", tensor, start)


# The functions as methods: `layer.bias.data.zero_()`.
_METHODS: dict[str, Callable[..., Any]] = {
    "copy_": _copy,
    "fill_": constant_,
    "normal_": normal_,
    "uniform_": uniform_,
    "zero_": zeros_,
}
for _name, _method in _METHODS.items():
    setattr(Parameter, _name, _method)
    setattr(Value, _name, _method)
