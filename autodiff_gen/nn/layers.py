"""Layers with the names, arguments, defaults and initialisation of torch.nn."""

from __future__ import annotations

import math
from typing import Any

from .. import functional as F
from .. import init
from ..errors import ModelError
from ..functional import torch_lacks
from ..ir import Value
from .module import Module, Parameter


class Linear(Module):
    """y = x . weight' + bias; weight [out_features, in_features]. Both start uniform within 1 /
    sqrt(in_features)."""

    @torch_lacks(device=None, dtype=None)
    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        for name, n in (("in_features", in_features), ("out_features", out_features)):
            if not isinstance(n, int) or n < 1:
                raise ModelError(f"Linear: {name}={n!r} must be a whole number of at least 1")
        self.in_features, self.out_features = in_features, out_features
        bound = 1.0 / math.sqrt(in_features)
        self.weight = Parameter(init.uniform((out_features, in_features), bound))
        if bias:
            self.bias = Parameter(init.uniform((out_features,), bound))
        else:
            self.register_parameter("bias", None)

    def forward(self, input: Any) -> Value:
        return F.linear(input, self.weight, self.bias)


class Identity(Module):
    def forward(self, input: Any) -> Any:
        return input


class Flatten(Module):
    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Any) -> Value:
        return F.flatten(input, self.start_dim, self.end_dim)
