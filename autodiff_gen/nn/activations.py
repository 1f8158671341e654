"""Activation functions as layers, with the names, arguments and defaults of torch.nn."""

from __future__ import annotations

from typing import Any

from .. import functional as F
from ..errors import ModelError
from ..functional import torch_lacks
from ..init import constant
from ..ir.node import Value
from ..ir.types import plain
from .module import Module
from .parameter import Parameter


class Sigmoid(Module):
    """`F.sigmoid` as a layer."""

    def forward(self, input: Any) -> Value:
        return F.sigmoid(input)


class Tanh(Module):
    """`F.tanh` as a layer."""

    def forward(self, input: Any) -> Value:
        return F.tanh(input)


class ReLU(Module):
    """max(x, 0). `inplace` is accepted and ignored: buffer assignment decides what is updated in place."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()

    def forward(self, input: Any) -> Value:
        return F.relu(input)


class ReLU6(Module):
    """x clamped to [0, 6]. `inplace` is ignored, here and below."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()

    def forward(self, input: Any) -> Value:
        return F.relu6(input)


class Hardtanh(Module):
    """`F.hardtanh` as a layer."""

    @torch_lacks(min_value=None, max_value=None)
    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.min_val, self.max_val = min_val, max_val

    def forward(self, input: Any) -> Value:
        return F.hardtanh(input, self.min_val, self.max_val)


class LeakyReLU(Module):
    """`F.leaky_relu` as a layer."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, input: Any) -> Value:
        return F.leaky_relu(input, self.negative_slope)


class ELU(Module):
    """`F.elu` as a layer."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha

    def forward(self, input: Any) -> Value:
        return F.elu(input, self.alpha)


class SELU(Module):
    """`F.selu` as a layer."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()

    def forward(self, input: Any) -> Value:
        return F.selu(input)


class GELU(Module):
    """x Phi(x), Phi the normal distribution function; approximate="tanh" avoids erf."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Any) -> Value:
        return F.gelu(input, self.approximate)


class SiLU(Module):
    """`F.silu` as a layer."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()

    def forward(self, input: Any) -> Value:
        return F.silu(input)


class Mish(Module):
    """`F.mish` as a layer."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()

    def forward(self, input: Any) -> Value:
        return F.mish(input)


class Softplus(Module):
    """`F.softplus` as a layer."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Any) -> Value:
        return F.softplus(input, self.beta, self.threshold)


class Softsign(Module):
    """`F.softsign` as a layer."""

    def forward(self, input: Any) -> Value:
        return F.softsign(input)


class Hardsigmoid(Module):
    """`F.hardsigmoid` as a layer."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()

    def forward(self, input: Any) -> Value:
        return F.hardsigmoid(input)


class Hardswish(Module):
    """`F.hardswish` as a layer."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()

    def forward(self, input: Any) -> Value:
        return F.hardswish(input)


class LogSigmoid(Module):
    """`F.logsigmoid` as a layer."""

    def forward(self, input: Any) -> Value:
        return F.logsigmoid(input)


class Softmax(Module):
    """`F.softmax` as a layer."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Value:
        return F.softmax(input, self.dim)


class LogSoftmax(Module):
    """`F.log_softmax` as a layer."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Value:
        return F.log_softmax(input, self.dim)


class Softmin(Module):
    """`F.softmin` as a layer."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Value:
        return F.softmin(input, self.dim)


class CELU(Module):
    """`F.celu` as a layer."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha

    def forward(self, input: Any) -> Value:
        return F.celu(input, self.alpha)


class GLU(Module):
    """a * sigmoid(b) with the halves a and b of the input along `dim`."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Value:
        return F.glu(input, self.dim)


class Hardshrink(Module):
    """`F.hardshrink` as a layer."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Any) -> Value:
        return F.hardshrink(input, self.lambd)


class Softshrink(Module):
    """`F.softshrink` as a layer."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Any) -> Value:
        return F.softshrink(input, self.lambd)


class Threshold(Module):
    """`F.threshold` as a layer."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold, self.value = threshold, value

    def forward(self, input: Any) -> Value:
        return F.threshold(input, self.threshold, self.value)


class PReLU(Module):
    """F.prelu with a weight [num_parameters]: one slope for all negative elements, or one for each channel."""

    @torch_lacks(device=None, dtype=None)
    def __init__(self, num_parameters: int = 1, init: float = 0.25) -> None:
        super().__init__()
        count = plain(num_parameters)
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ModelError(f"PReLU: num_parameters={num_parameters!r} must be a whole number of at least 1")
        self.num_parameters = count
        self.weight = Parameter(constant((count,), init))

    def forward(self, input: Any) -> Value:
        return F.prelu(input, self.weight)
