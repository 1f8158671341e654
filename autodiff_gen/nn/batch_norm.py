"""Normalisation layers with optional running statistics, with the arguments and buffers of torch.nn."""

from __future__ import annotations

from typing import Any

from .. import functional as F
from .. import init
from ..errors import ModelError
from ..functional import torch_lacks
from ..functional.arguments import TensorLike, as_value
from ..ir.node import Value
from .module import Module
from .parameter import Buffer, Parameter

MOST_BATCHES = 2**31 - 1  # num_batches_tracked saturates here


class _Norm(Module):
    """Base of batch norm and instance norm. Parameters and buffers have the shape [C], except the s32 scalar
    num_batches_tracked; weight and running_var are 1 at first, the others 0."""

    printed = "num_features eps= momentum= affine= bias= track_running_stats="
    ranks: tuple[int, ...] = ()
    shapes = ""

    def __init__(
        self,
        num_features: int,
        eps: float,
        momentum: float | None,
        affine: bool,
        track_running_stats: bool,
        bias: bool,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if isinstance(num_features, bool) or not isinstance(num_features, int) or num_features < 1:
            raise ModelError(f"{name}: num_features={num_features!r} must be an integer of at least 1")
        if momentum is not None and not 0 <= momentum <= 1:
            raise ModelError(f"{name}: momentum={momentum!r} must be a number from 0 to 1, or None")
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        ones, zeros = init.ones((num_features,)), init.zeros((num_features,))
        self.register_parameter("weight", Parameter(ones) if affine else None)
        self.register_parameter("bias", Parameter(zeros) if affine and bias else None)
        tracks = track_running_stats
        self.register_buffer("running_mean", Buffer(zeros) if tracks else None)
        self.register_buffer("running_var", Buffer(ones) if tracks else None)
        self.register_buffer("num_batches_tracked", Buffer(init.zeros(()), "s32") if tracks else None)

    def _check(self, input: Value, channels: Any) -> None:
        if input.ndim not in self.ranks or channels != self.num_features:
            raise ModelError(
                f"{type(self).__name__}: the input must be {self.shapes} with C = {self.num_features}, not {input!r}"
            )


class _BatchNorm(_Norm):
    @torch_lacks(device=None, dtype=None)
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, bias)

    def forward(self, input: TensorLike) -> Value:
        x = as_value(input)
        self._check(x, x.shape[1] if x.ndim > 1 else None)
        if not self.track_running_stats:
            return F.batch_norm(x, None, None, self.weight, self.bias, True, 0.0, self.eps)
        before = self.num_batches_tracked
        count = before + F.to(before < MOST_BATCHES, "s32") if self.training else before
        momentum = 1.0 / F.to(count, "f32") if self.momentum is None else self.momentum
        y = F.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, self.training, momentum, self.eps
        )
        return F.with_updates(y, {before: count})


class BatchNorm1d(_BatchNorm):
    """F.batch_norm of input [N, C] or [N, C, L]. momentum=None: running statistics are averages over all batches."""

    ranks, shapes = (2, 3), "[N, C] or [N, C, L]"


class BatchNorm2d(_BatchNorm):
    """F.batch_norm of input [N, C, H, W]. momentum=None: running statistics are averages over all batches."""

    ranks, shapes = (4,), "[N, C, H, W]"


class _InstanceNorm(_Norm):
    @torch_lacks(device=None, dtype=None)
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, bias)

    def forward(self, input: TensorLike) -> Value:
        x = as_value(input)
        unbatched = x.ndim == self.ranks[0]
        self._check(x, x.shape[0 if unbatched else 1] if x.ndim else None)
        y = F.instance_norm(
            F.unsqueeze(x, 0) if unbatched else x,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        if self.track_running_stats:  # the count keeps its value, as in PyTorch
            y = F.with_updates(y, {self.num_batches_tracked: self.num_batches_tracked})
        return F.squeeze(y, 0) if unbatched else y


class InstanceNorm1d(_InstanceNorm):
    """F.instance_norm of input [N, C, L] or [C, L]. momentum=None: running statistics do not change, as in PyTorch."""

    ranks, shapes = (2, 3), "[N, C, L] or [C, L]"


class InstanceNorm2d(_InstanceNorm):
    """F.instance_norm of input [N, C, H, W] or [C, H, W]. momentum=None: as in InstanceNorm1d."""

    ranks, shapes = (3, 4), "[N, C, H, W] or [C, H, W]"
