"""Which input channels of a layer train."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ModelError
from ..ir.graph import NORMS, Channels
from ..ir.types import plain
from .module import Module


def update_channels(layer: Module, channels: float | Sequence[int], norm: str = "l1") -> Module:
    """Train the weights of some input channels of a linear layer or a convolution: a fraction, which selects the
    channels whose weights have the largest norm, or the channels in a sequence. Nothing is computed, saved or kept in
    RAM for the others, whose weights are constants. The bias is left as it is. norm: "l1", the sum of magnitudes, or
    "l2", the root of the sum of squares. Returns the layer, whose weight has requires_grad=True.

    Call it before a model is built of the layer. Raises ModelError for a layer without input channels, a fraction
    outside (0, 1], channels that there are not, and another norm.
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
