"""Convolution layers, as in torch.nn. Weights and biases start uniformly in +-1 / sqrt(fan_in), where fan_in is the
product of all extents of the weight but the first, as in PyTorch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import functional as F
from .. import init
from ..errors import ModelError
from ..functional import torch_lacks
from ..functional.arguments import TensorLike
from ..functional.windows import Numbers
from ..ir.node import Value
from ..ir.types import plain
from .module import Module
from .parameter import Parameter

MODES = ("zeros", "reflect", "replicate", "circular")


class _Convolution(Module):
    """The arguments and parameters of a convolution with `axes` spatial axes."""

    axes: int
    transposed = False

    def _build(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Numbers,
        stride: Numbers,
        padding: Numbers | str,
        dilation: Numbers,
        groups: int,
        bias: bool,
    ) -> None:
        name = type(self).__name__
        in_channels, out_channels, groups = plain(in_channels), plain(out_channels), plain(groups)
        for role, n in (("in_channels", in_channels), ("out_channels", out_channels), ("groups", groups)):
            if not isinstance(n, int) or n < 1:
                raise ModelError(f"{name}: {role}={n!r} must be an integer of at least 1")
        if in_channels % groups or out_channels % groups:
            raise ModelError(
                f"{name}: groups={groups} must divide in_channels={in_channels} and out_channels={out_channels}"
            )
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = self._numbers("kernel_size", kernel_size, 1)
        self.stride = self._numbers("stride", stride, 1)
        self.dilation = self._numbers("dilation", dilation, 1)
        self.padding: Any = padding if isinstance(padding, str) else self._numbers("padding", padding, 0)
        rows, columns = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        shape = (rows, columns // groups, *self.kernel_size)
        bound = 1.0 / math.sqrt(math.prod(shape[1:]))
        self.weight = Parameter(init.uniform(shape, bound))
        self.register_parameter("bias", Parameter(init.uniform((out_channels,), bound)) if bias else None)

    def _numbers(self, role: str, given: Numbers, least: int) -> tuple[int, ...]:
        numbers = tuple(given) if isinstance(given, Sequence) else (given,) * self.axes
        if len(numbers) != self.axes or not all(isinstance(k, int) and k >= least for k in numbers):
            raise ModelError(
                f"{type(self).__name__}: {role}={given!r} must be an integer of at least {least}, "
                f"or {self.axes} of them"
            )
        return numbers

    def _padded(self, input: Any, mode: str) -> tuple[Any, Any]:
        """The input padded according to `mode`, and the padding that is left to the convolution."""
        if mode == "zeros":
            return input, self.padding
        if isinstance(self.padding, str):
            spans = [d * (k - 1) for k, d in zip(self.kernel_size, self.dilation, strict=True)]
            sides = [(s // 2, s - s // 2) if self.padding == "same" else (0, 0) for s in spans]
        else:
            sides = [(p, p) for p in self.padding]
        return F.pad(input, [p for side in reversed(sides) for p in side], mode), 0

    def _check_mode(self, padding_mode: str) -> str:
        if padding_mode not in MODES:
            raise ModelError(
                f"{type(self).__name__}: padding_mode={padding_mode!r}; known: {', '.join(MODES)}"
            )
        if isinstance(self.padding, str) and self.padding not in ("same", "valid"):
            raise ModelError(
                f'{type(self).__name__}: padding={self.padding!r}; known: numbers, "same", "valid"'
            )
        return padding_mode


def channel_axis(groups: int, inputs: int, outputs: int) -> int | None:
    """The axis of the input channels in a weight [out, in / groups, ...]: 1 without groups, 0 if each channel is a
    group, otherwise None."""
    if groups == 1:
        return 1
    return 0 if groups == inputs == outputs else None


class _Conv(_Convolution):
    printed = (
        "in_channels out_channels kernel_size= stride= padding=? dilation=? groups=? bias=? padding_mode=?"
    )

    @torch_lacks(device=None, dtype=None)
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Numbers,
        stride: Numbers = 1,
        padding: Numbers | str = 0,
        dilation: Numbers = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
    ) -> None:
        super().__init__()
        self._build(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias)
        self.padding_mode = self._check_mode(padding_mode)

    @property
    def channel_axis(self) -> int | None:
        """The axis of the input channels in the weight, as the function channel_axis gives it."""
        return channel_axis(self.groups, self.in_channels, self.out_channels)

    def forward(self, input: TensorLike) -> Value:
        x, padding = self._padded(input, self.padding_mode)
        convolve = F.conv1d if self.axes == 1 else F.conv2d
        return convolve(x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class Conv1d(_Conv):
    """F.conv1d with weight [out_channels, in_channels / groups, kernel_size] and bias [out_channels]."""

    axes = 1


class Conv2d(_Conv):
    """F.conv2d with weight [out_channels, in_channels / groups, kh, kw] and bias [out_channels]."""

    axes = 2


class _ConvTranspose(_Convolution):
    printed = (
        "in_channels out_channels kernel_size= stride= padding=? dilation=? output_padding=? groups=? bias=?"
    )
    transposed = True

    @torch_lacks(padding_mode="zeros", device=None, dtype=None)
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Numbers,
        stride: Numbers = 1,
        padding: Numbers = 0,
        output_padding: Numbers = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Numbers = 1,
    ) -> None:
        super().__init__()
        self._build(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias)
        self.output_padding = self._numbers("output_padding", output_padding, 0)

    def forward(self, input: TensorLike) -> Value:
        numbers = self.stride, self.padding, self.output_padding, self.groups, self.dilation
        convolve = F.conv_transpose1d if self.axes == 1 else F.conv_transpose2d
        return convolve(input, self.weight, self.bias, *numbers)


class ConvTranspose1d(_ConvTranspose):
    """F.conv_transpose1d with weight [in_channels, out_channels / groups, kernel_size] and bias [out_channels]."""

    axes = 1


class ConvTranspose2d(_ConvTranspose):
    """F.conv_transpose2d with weight [in_channels, out_channels / groups, kh, kw] and bias [out_channels]."""

    axes = 2
