"""Activation functions as layers, with the names, arguments and defaults of torch.nn. `inplace` is accepted and
ignored: buffer assignment decides which values are updated in place.

A new activation is a module whose `forward` calls functions (docs/model.md); CONTRIBUTING.md shows how to add one here.
"""

from __future__ import annotations

from typing import Any, ClassVar

from .. import functional as F
from ..errors import ModelError
from ..functional import torch_lacks
from ..functional.arguments import TensorLike
from ..init import constant
from ..ir.node import Value
from ..ir.types import plain
from .module import Module
from .parameter import Parameter


class _Plain(Module):
    """A function of the input without options."""

    function: ClassVar[staticmethod[[Any], Value]]

    def forward(self, input: TensorLike) -> Value:
        return type(self).function(input)


class _Activation(_Plain):
    """A function of the input whose layer has the option `inplace`."""

    printed = "inplace=?"

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class _AlongAxis(Module):
    """A function of the input along an axis."""

    printed = "dim="
    function: ClassVar[staticmethod[[Any, int], Value]]

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: TensorLike) -> Value:
        return type(self).function(input, self.dim)


class Sigmoid(_Plain):
    """`F.sigmoid` as a layer."""

    function = staticmethod(F.sigmoid)


class Tanh(_Plain):
    """`F.tanh` as a layer."""

    function = staticmethod(F.tanh)


class ReLU(_Activation):
    """max(input, 0); `F.relu` as a layer."""

    function = staticmethod(F.relu)


class ReLU6(_Activation):
    """`F.relu6` as a layer."""

    function = staticmethod(F.relu6)


class Hardtanh(Module):
    """`F.hardtanh` as a layer."""

    printed = "min_val= max_val= inplace=?"

    @torch_lacks(min_value=None, max_value=None)
    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.min_val, self.max_val, self.inplace = min_val, max_val, inplace

    def forward(self, input: TensorLike) -> Value:
        return F.hardtanh(input, self.min_val, self.max_val)


class LeakyReLU(Module):
    """`F.leaky_relu` as a layer."""

    printed = "negative_slope= inplace=?"

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope, self.inplace = negative_slope, inplace

    def forward(self, input: TensorLike) -> Value:
        return F.leaky_relu(input, self.negative_slope)


class ELU(Module):
    """`F.elu` as a layer."""

    printed = "alpha= inplace=?"

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input: TensorLike) -> Value:
        return F.elu(input, self.alpha)


class SELU(_Activation):
    """`F.selu` as a layer."""

    function = staticmethod(F.selu)


class GELU(Module):
    """`F.gelu` as a layer."""

    printed = "approximate="

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: TensorLike) -> Value:
        return F.gelu(input, self.approximate)


class SiLU(_Activation):
    """`F.silu` as a layer."""

    function = staticmethod(F.silu)


class Mish(_Activation):
    """`F.mish` as a layer."""

    function = staticmethod(F.mish)


class Softplus(Module):
    """`F.softplus` as a layer."""

    printed = "beta= threshold="

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: TensorLike) -> Value:
        return F.softplus(input, self.beta, self.threshold)


class Softsign(_Plain):
    """`F.softsign` as a layer."""

    function = staticmethod(F.softsign)


class Hardsigmoid(_Activation):
    """`F.hardsigmoid` as a layer."""

    function = staticmethod(F.hardsigmoid)


class Hardswish(_Activation):
    """`F.hardswish` as a layer."""

    function = staticmethod(F.hardswish)


class LogSigmoid(_Plain):
    """`F.logsigmoid` as a layer."""

    function = staticmethod(F.logsigmoid)


class Softmax(_AlongAxis):
    """`F.softmax` as a layer."""

    function = staticmethod(F.softmax)


class LogSoftmax(_AlongAxis):
    """`F.log_softmax` as a layer."""

    function = staticmethod(F.log_softmax)


class Softmin(_AlongAxis):
    """`F.softmin` as a layer."""

    function = staticmethod(F.softmin)


class CELU(Module):
    """`F.celu` as a layer."""

    printed = "alpha= inplace=?"

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input: TensorLike) -> Value:
        return F.celu(input, self.alpha)


class GLU(Module):
    """`F.glu` as a layer."""

    printed = "dim="

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: TensorLike) -> Value:
        return F.glu(input, self.dim)


class Hardshrink(Module):
    """`F.hardshrink` as a layer."""

    printed = "lambd"

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: TensorLike) -> Value:
        return F.hardshrink(input, self.lambd)


class Softshrink(Module):
    """`F.softshrink` as a layer."""

    printed = "lambd"

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: TensorLike) -> Value:
        return F.softshrink(input, self.lambd)


class Threshold(Module):
    """`F.threshold` as a layer."""

    printed = "threshold= value= inplace=?"

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input: TensorLike) -> Value:
        return F.threshold(input, self.threshold, self.value)


class PReLU(Module):
    """F.prelu with a weight [num_parameters], whose initial values are `init`: one slope for all negative elements, or
    one for each channel."""

    printed = "num_parameters="

    @torch_lacks(device=None, dtype=None)
    def __init__(self, num_parameters: int = 1, init: float = 0.25) -> None:
        super().__init__()
        count = plain(num_parameters)
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ModelError(f"PReLU: num_parameters={num_parameters!r} must be an integer of at least 1")
        self.num_parameters = count
        self.weight = Parameter(constant((count,), init))

    def forward(self, input: TensorLike) -> Value:
        return F.prelu(input, self.weight)
