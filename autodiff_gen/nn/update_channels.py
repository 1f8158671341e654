"""The choice of the input channels of a layer that train."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ModelError
from ..ir.graph import NORMS, Channels
from ..ir.types import plain
from .module import Module


def update_channels(layer: Module, channels: float | Sequence[int], norm: str = "l1") -> Module:
    """Train only the weights of some input channels of a linear layer or a convolution. channels: a sequence of
    channels, or a fraction, which selects the channels whose weights have the largest norm. norm: "l1", the sum of
    magnitudes, or "l2", the root of the sum of squares.

    The weights of the other channels are constants: nothing is computed, saved or kept in RAM for them. The bias is not
    affected. Sets requires_grad=True for the weight, and returns the layer.

    Call it before a model with the layer is built. Raises ModelError for a layer without an axis of input channels, a
    fraction outside (0, 1], channels that the layer does not have, and an unknown norm.
    """
    if not isinstance(layer, Module):
        raise ModelError(f"update_channels: expected a layer, not {layer!r}")
    weight, axis = layer._members()[0].get("weight"), getattr(layer, "channel_axis", None)
    if weight is None or axis is None:
        raise ModelError(
            f"update_channels: {type(layer).__name__} has no weights by input channel; give a linear layer or a "
            "convolution without groups or with one for each channel"
        )
    count = weight.shape[axis]
    given = plain(channels)
    chosen = _fraction(given) if isinstance(given, int | float) else _listed(given, count)
    if norm not in list(NORMS):
        raise ModelError(f"update_channels: norm={norm!r} must be {' or '.join(map(repr, NORMS))}")
    weight.requires_grad = True
    weight.channels = None if chosen in (1.0, tuple(range(count))) else Channels(axis, chosen, norm)
    return layer


def _fraction(fraction: float) -> float:
    if isinstance(fraction, bool) or not 0 < fraction <= 1:
        raise ModelError(
            f"update_channels: the fraction {fraction!r} must be above 0 and at most 1; for single channels give a list"
        )
    return float(fraction)


def _listed(given: Sequence[int], count: int) -> tuple[int, ...]:
    try:
        chosen = [plain(c) for c in given]
    except TypeError:
        raise ModelError(
            f"update_channels: expected a fraction or a sequence of channels, not {given!r}"
        ) from None
    wrong = [c for c in chosen if isinstance(c, bool) or not isinstance(c, int) or not 0 <= c < count]
    if wrong:
        raise ModelError(f"update_channels: {wrong[0]!r} is no channel; the layer has 0 to {count - 1}")
    if not chosen or len(set(chosen)) != len(chosen):
        raise ModelError("update_channels: give at least one channel, each of them once")
    return tuple(sorted(chosen))
