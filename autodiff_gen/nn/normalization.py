"""Normalisation layers without running statistics, as in torch.nn; weights start at 1, biases at 0."""

from __future__ import annotations

from collections.abc import Sequence

from .. import functional as F
from .. import init
from ..errors import ModelError
from ..functional import torch_lacks
from ..functional.arguments import TensorLike
from ..ir.node import Value
from ..ir.types import plain
from .module import Module
from .parameter import Parameter


def _extents(layer: str, normalized_shape: int | Sequence[int]) -> tuple[int, ...]:
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not shape or not all(isinstance(d, int) and d >= 1 for d in shape):
        raise ModelError(f"{layer}: normalized_shape={normalized_shape!r} must be integers of at least 1")
    return shape


class LayerNorm(Module):
    """F.layer_norm over the last axes, with a weight and a bias of their shape."""

    printed = "normalized_shape eps= elementwise_affine= bias="

    @torch_lacks(device=None, dtype=None)
    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.normalized_shape, self.eps = _extents("LayerNorm", normalized_shape), eps
        self.elementwise_affine = elementwise_affine
        ones, zeros = init.ones(self.normalized_shape), init.zeros(self.normalized_shape)
        self.register_parameter("weight", Parameter(ones) if elementwise_affine else None)
        self.register_parameter("bias", Parameter(zeros) if elementwise_affine and bias else None)

    def forward(self, input: TensorLike) -> Value:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(Module):
    """F.rms_norm over the last axes, with a weight of their shape."""

    printed = "normalized_shape eps= elementwise_affine="

    @torch_lacks(device=None, dtype=None)
    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
    ) -> None:
        super().__init__()
        self.normalized_shape, self.eps = _extents("RMSNorm", normalized_shape), eps
        self.elementwise_affine = elementwise_affine
        ones = init.ones(self.normalized_shape)
        self.register_parameter("weight", Parameter(ones) if elementwise_affine else None)

    def forward(self, input: TensorLike) -> Value:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)


class GroupNorm(Module):
    """F.group_norm of [N, num_channels, ...] in num_groups groups, with a weight and a bias per channel."""

    printed = "num_groups num_channels eps= affine= bias="

    @torch_lacks(device=None, dtype=None)
    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, bias: bool = True
    ) -> None:
        super().__init__()
        num_groups, num_channels = plain(num_groups), plain(num_channels)
        if not isinstance(num_groups, int) or num_groups < 1 or num_channels % num_groups:
            raise ModelError(
                f"GroupNorm: num_channels={num_channels!r} cannot be divided into num_groups={num_groups!r} groups"
            )
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self.register_parameter("weight", Parameter(init.ones((num_channels,))) if affine else None)
        self.register_parameter("bias", Parameter(init.zeros((num_channels,))) if affine and bias else None)

    def forward(self, input: TensorLike) -> Value:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)


class LocalResponseNorm(Module):
    """F.local_response_norm over `size` neighbouring channels."""

    printed = "size alpha= beta= k="

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: TensorLike) -> Value:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)
