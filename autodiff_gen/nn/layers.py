"""Layers with the names, arguments, defaults and initialisation of torch.nn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .. import functional as F
from .. import init
from ..errors import ModelError
from ..functional import torch_lacks
from ..functional.arguments import TensorLike
from ..ir.node import Value
from ..ir.types import plain
from .module import Module
from .parameter import Parameter


class Linear(Module):
    """input . weight' + bias: [..., in_features] -> [..., out_features], with weight [out_features, in_features] and
    bias [out_features]. Both start uniformly in +-1 / sqrt(in_features)."""

    printed = "in_features= out_features= bias="
    channel_axis = 1  # the axis of the input channels in the weight

    @torch_lacks(device=None, dtype=None)
    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        in_features, out_features = plain(in_features), plain(out_features)
        for name, n in (("in_features", in_features), ("out_features", out_features)):
            if not isinstance(n, int) or n < 1:
                raise ModelError(f"Linear: {name}={n!r} must be an integer of at least 1")
        self.in_features, self.out_features = in_features, out_features
        bound = 1.0 / math.sqrt(in_features)
        self.weight = Parameter(init.uniform((out_features, in_features), bound))
        if bias:
            self.bias = Parameter(init.uniform((out_features,), bound))
        else:
            self.register_parameter("bias", None)

    def forward(self, input: TensorLike) -> Value:
        return F.linear(input, self.weight, self.bias)


class Bilinear(Module):
    """F.bilinear with a weight [out_features, in1_features, in2_features] and a bias [out_features]. Both start
    uniformly in +-1 / sqrt(in1_features)."""

    printed = "in1_features= in2_features= out_features= bias="

    @torch_lacks(device=None, dtype=None)
    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        sizes = {"in1_features": in1_features, "in2_features": in2_features, "out_features": out_features}
        for name, n in sizes.items():
            if not isinstance(plain(n), int) or n < 1:
                raise ModelError(f"Bilinear: {name}={n!r} must be an integer of at least 1")
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        bound = 1.0 / math.sqrt(in1_features)
        self.weight = Parameter(init.uniform((out_features, in1_features, in2_features), bound))
        self.register_parameter("bias", Parameter(init.uniform((out_features,), bound)) if bias else None)

    def forward(self, input1: TensorLike, input2: TensorLike) -> Value:
        return F.bilinear(input1, input2, self.weight, self.bias)


class Embedding(Module):
    """F.embedding with a weight [num_embeddings, embedding_dim], which starts from the standard normal distribution.
    The row `padding_idx` starts at 0 and gets no gradient."""

    printed = "num_embeddings embedding_dim padding_idx=?"

    @torch_lacks(
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        sparse=False,
        _weight=None,
        _freeze=False,
        device=None,
        dtype=None,
    )
    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None) -> None:
        super().__init__()
        num_embeddings, embedding_dim = plain(num_embeddings), plain(embedding_dim)
        for name, n in (("num_embeddings", num_embeddings), ("embedding_dim", embedding_dim)):
            if not isinstance(n, int) or n < 1:
                raise ModelError(f"Embedding: {name}={n!r} must be an integer of at least 1")
        start = init.normal((num_embeddings, embedding_dim))
        if padding_idx is not None:
            if not isinstance(padding_idx, int) or not -num_embeddings <= padding_idx < num_embeddings:
                raise ModelError(
                    f"Embedding: padding_idx={padding_idx!r} must be from 0 to {num_embeddings - 1}"
                )
            padding_idx %= num_embeddings
            first = padding_idx * embedding_dim
            start = replace(start, zeros=range(first, first + embedding_dim))
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        self.weight = Parameter(start)

    def forward(self, input: TensorLike) -> Value:
        return F.embedding(input, self.weight, self.padding_idx)


class Identity(Module):
    """The input itself; all arguments are ignored, as in PyTorch."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: TensorLike) -> Any:
        return input


class Flatten(Module):
    """Axes start_dim to end_dim merged into one; see F.flatten."""

    printed = "start_dim= end_dim="

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: TensorLike) -> Value:
        return F.flatten(input, self.start_dim, self.end_dim)


class Unflatten(Module):
    """One axis split into several; see F.unflatten."""

    printed = "dim= unflattened_size="

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, input: TensorLike) -> Value:
        return F.unflatten(input, self.dim, self.unflattened_size)
