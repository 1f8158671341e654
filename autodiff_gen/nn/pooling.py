"""Pooling layers, as in torch.nn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from .. import functional as F
from ..functional import torch_lacks
from ..functional.arguments import TensorLike
from ..functional.pooling import Sizes
from ..functional.windows import Numbers
from ..ir.node import Value
from .module import Module


class _MaxPool(Module):
    printed = "kernel_size= stride= padding= dilation= ceil_mode="
    axes: int

    @torch_lacks(return_indices=False)
    def __init__(
        self,
        kernel_size: Numbers,
        stride: Numbers | None = None,
        padding: Numbers = 0,
        dilation: Numbers = 1,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size, self.padding = kernel_size, padding
        self.stride = kernel_size if stride is None else stride
        self.dilation, self.ceil_mode = dilation, ceil_mode

    def forward(self, input: TensorLike) -> Value:
        pool = F.max_pool1d if self.axes == 1 else F.max_pool2d
        return pool(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)


class MaxPool1d(_MaxPool):
    """F.max_pool1d."""

    axes = 1


class MaxPool2d(_MaxPool):
    """F.max_pool2d."""

    axes = 2


class AvgPool1d(Module):
    """F.avg_pool1d."""

    printed = "kernel_size= stride= padding="

    def __init__(
        self,
        kernel_size: Numbers,
        stride: Numbers | None = None,
        padding: Numbers = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        sizes = (kernel_size, kernel_size if stride is None else stride, padding)
        self.kernel_size, self.stride, self.padding = (k if isinstance(k, Sequence) else (k,) for k in sizes)
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, input: TensorLike) -> Value:
        numbers = self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        return F.avg_pool1d(input, *numbers)


class AvgPool2d(Module):
    """F.avg_pool2d."""

    printed = "kernel_size= stride= padding="

    def __init__(
        self,
        kernel_size: Numbers,
        stride: Numbers | None = None,
        padding: Numbers = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size, self.padding = kernel_size, padding
        self.stride = kernel_size if stride is None else stride
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: TensorLike) -> Value:
        numbers = self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        return F.avg_pool2d(input, *numbers, self.divisor_override)


class _Adaptive(Module):
    """Pooling with output_size windows that cover the image."""

    printed = "output_size="
    function: ClassVar[staticmethod[[Any, Sizes], Value]]

    def __init__(self, output_size: Sizes) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: TensorLike) -> Value:
        return type(self).function(input, self.output_size)


class AdaptiveAvgPool1d(_Adaptive):
    """F.adaptive_avg_pool1d."""

    function = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_Adaptive):
    """F.adaptive_avg_pool2d."""

    function = staticmethod(F.adaptive_avg_pool2d)


class _AdaptiveMax(_Adaptive):
    @torch_lacks(return_indices=False)
    def __init__(self, output_size: Sizes) -> None:
        super().__init__(output_size)


class AdaptiveMaxPool1d(_AdaptiveMax):
    """F.adaptive_max_pool1d."""

    function = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMax):
    """F.adaptive_max_pool2d."""

    function = staticmethod(F.adaptive_max_pool2d)
