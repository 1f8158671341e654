"""Images of another size as layers, as in torch.nn."""

from __future__ import annotations

from typing import Any

from .. import functional as F
from ..functional.arguments import TensorLike
from ..ir.node import Value
from .module import Module


class Upsample(Module):
    """F.interpolate to `size`, or by `scale_factor`."""

    printed = "scale_factor=? size=? mode="

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.size, self.mode = size, mode
        self.scale_factor = float(scale_factor) if isinstance(scale_factor, int) else scale_factor
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def forward(self, input: TensorLike) -> Value:
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )


class UpsamplingNearest2d(Upsample):
    """Upsample with mode="nearest"."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor)


class UpsamplingBilinear2d(Upsample):
    """Upsample with mode="bilinear" and align_corners=True."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)


class PixelShuffle(Module):
    """[N, C r^2, H, W] -> [N, C, H r, W r], r the upscale_factor."""

    printed = "upscale_factor="

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: TensorLike) -> Value:
        return F.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Module):
    """[N, C, H r, W r] -> [N, C r^2, H, W], r the downscale_factor."""

    printed = "downscale_factor="

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: TensorLike) -> Value:
        return F.pixel_unshuffle(input, self.downscale_factor)


class ChannelShuffle(Module):
    """F.channel_shuffle of [N, C, ...] as a layer."""

    printed = "groups="

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: TensorLike) -> Value:
        return F.channel_shuffle(input, self.groups)
