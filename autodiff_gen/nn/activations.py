"""Activation functions as layers, with the names, arguments and defaults of torch.nn."""

from __future__ import annotations

from typing import Any

from .. import functional as F
from ..functional import torch_lacks
from ..ir.node import Value
from .module import Module


class Sigmoid(Module):
    def forward(self, input: Any) -> Value:
        return F.sigmoid(input)


class Tanh(Module):
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
    @torch_lacks(min_value=None, max_value=None)
    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.min_val, self.max_val = min_val, max_val

    def forward(self, input: Any) -> Value:
        return F.hardtanh(input, self.min_val, self.max_val)


class LeakyReLU(Module):
    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, input: Any) -> Value:
        return F.leaky_relu(input, self.negative_slope)


class ELU(Module):
    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha

    def forward(self, input: Any) -> Value:
        return F.elu(input, self.alpha)


class SELU(Module):
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
    def __init__(self, inplace: bool = False) -> None:
        super().__init__()

    def forward(self, input: Any) -> Value:
        return F.silu(input)


class Mish(Module):
    def __init__(self, inplace: bool = False) -> None:
        super().__init__()

    def forward(self, input: Any) -> Value:
        return F.mish(input)


class Softplus(Module):
    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Any) -> Value:
        return F.softplus(input, self.beta, self.threshold)


class Softsign(Module):
    def forward(self, input: Any) -> Value:
        return F.softsign(input)


class Hardsigmoid(Module):
    def __init__(self, inplace: bool = False) -> None:
        super().__init__()

    def forward(self, input: Any) -> Value:
        return F.hardsigmoid(input)


class Hardswish(Module):
    def __init__(self, inplace: bool = False) -> None:
        super().__init__()

    def forward(self, input: Any) -> Value:
        return F.hardswish(input)


class LogSigmoid(Module):
    def forward(self, input: Any) -> Value:
        return F.logsigmoid(input)


class Softmax(Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Value:
        return F.softmax(input, self.dim)


class LogSoftmax(Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Value:
        return F.log_softmax(input, self.dim)
