"""Padding layers for images and sequences, as in torch.nn. padding: a number for all sides, or (left, right) for one
axis, (left, right, top, bottom) for two."""

from __future__ import annotations

from collections.abc import Sequence

from .. import functional as F
from ..errors import ModelError
from ..functional.arguments import TensorLike
from ..ir.node import Value
from .module import Module


class _Pad(Module):
    printed = "padding"
    axes: int
    mode = "constant"

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        sides = (padding,) * (2 * self.axes) if isinstance(padding, int) else tuple(padding)
        if len(sides) != 2 * self.axes or not all(isinstance(k, int) for k in sides):
            raise ModelError(
                f"{type(self).__name__}: padding={padding!r} must be an integer, or {2 * self.axes} of them"
            )
        self.padding, self.value = sides, 0.0

    def forward(self, input: TensorLike) -> Value:
        return F.pad(input, self.padding, self.mode, self.value if self.mode == "constant" else None)


class _ConstantPad(_Pad):
    printed = "padding= value="

    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value


class ZeroPad1d(_Pad):
    """Zeros before and after the last axis."""

    axes = 1


class ZeroPad2d(_Pad):
    """Zeros around the last two axes."""

    axes = 2


class ConstantPad1d(_ConstantPad):
    """A number before and after the last axis."""

    axes = 1


class ConstantPad2d(_ConstantPad):
    """A number around the last two axes."""

    axes = 2


class ReflectionPad1d(_Pad):
    """The last axis mirrored about its border elements, which are not repeated."""

    axes, mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """The last two axes mirrored about their border elements, which are not repeated."""

    axes, mode = 2, "reflect"


class ReplicationPad1d(_Pad):
    """The border elements of the last axis repeated."""

    axes, mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    """The border elements of the last two axes repeated."""

    axes, mode = 2, "replicate"


class CircularPad1d(_Pad):
    """The last axis continued from its other end."""

    axes, mode = 1, "circular"


class CircularPad2d(_Pad):
    """The last two axes continued from their other ends."""

    axes, mode = 2, "circular"
