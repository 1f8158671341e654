"""The real numbers that the integers of a quantised tensor represent, and the integer arithmetic between two such
tensors: with CMSIS-NN's default rounding, as in kernels/ag_quantization.h."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import ShapeError

LOW, HIGH = -128, 127  # of s8
LARGEST_SUM = 2**31 - 1  # of s32
LEAST_SCALE = 2.0**-126  # normal in float32, and so is its inverse


@dataclass(frozen=True)
class Quantization:
    """An integer q represents scale * (q - zero_point). scales: one, or with `axis` one for each element along it."""

    scales: tuple[float, ...]
    zero_point: int = 0
    axis: int | None = None

    def __post_init__(self) -> None:
        wrong = next((s for s in self.scales if not LEAST_SCALE <= s <= 1 / LEAST_SCALE), None)
        if wrong is not None or not self.scales:
            raise ShapeError(
                f"scale {wrong!r}: scales must be finite and greater than 0, from 2^-126 to 2^126"
            )
        if self.axis is None and len(self.scales) != 1:
            raise ShapeError(f"{len(self.scales)} scales need the axis along which they hold")
        if not LOW <= self.zero_point <= HIGH:
            raise ShapeError(f"zero_point {self.zero_point} is not between {LOW} and {HIGH}")

    @property
    def scale(self) -> float:
        """The scale of a tensor that has one. Raises ShapeError for scales along an axis."""
        if self.axis is not None:
            raise ShapeError(f"scales along axis {self.axis}, where one scale for the whole tensor is needed")
        return self.scales[0]

    def along(self, shape: tuple[int, ...]) -> Any:
        """The scales as an array that broadcasts to a tensor of this shape."""
        axis = 0 if self.axis is None else self.axis
        return np.array(self.scales).reshape(-1, *(1,) * (len(shape) - 1 - axis))

    def moved(self, move: Callable[[Any], Any], shape: tuple[int, ...]) -> Quantization | None:
        """The quantisation of an array of `shape` after `move`, which only moves elements; None where the scales are no
        longer along a single axis."""
        if self.axis is None:
            return self
        labels = np.broadcast_to(np.arange(len(self.scales)).reshape(self.along(shape).shape), shape)
        after = move(labels)
        for axis, extent in enumerate(after.shape):
            first = np.moveaxis(after, axis, 0).reshape(extent, -1)
            if (first == first[:, :1]).all():
                return replace(self, scales=tuple(self.scales[i] for i in first[:, 0]), axis=axis)
        return None

    def joined(
        self, parts: Sequence[tuple[Quantization, tuple[int, ...]]], join: Callable[[list[Any]], Any]
    ) -> Quantization | None:
        """The quantisation of the array that `join` makes from arrays with these quantisations and shapes, this one
        first; None where the scales are along no single axis."""
        after = join([np.broadcast_to(q.along(shape), shape) for q, shape in parts])
        for axis, extent in enumerate(after.shape):
            first = np.moveaxis(after, axis, 0).reshape(extent, -1)
            if (first == first[:, :1]).all():
                return replace(self, scales=tuple(map(float, first[:, 0])), axis=axis)
        return None

    def __repr__(self) -> str:
        scale = f"{self.scales[0]:.6g}" if self.axis is None else f"{len(self.scales)} scales"
        where = "" if self.axis is None else f", axis {self.axis}"
        return f"<{scale}, zero {self.zero_point}{where}>"


def fixed_point(ratio: float) -> tuple[int, int]:
    """(multiplier, shift) of a number: multiplier / 2^31 * 2^shift, with a multiplier whose magnitude is at least 2^30;
    (0, 0) for numbers below 2^-32."""
    fraction, shift = math.frexp(ratio)
    multiplier = round(fraction * 2**31)
    if abs(multiplier) == 2**31:
        multiplier, shift = multiplier // 2, shift + 1
    return (multiplier, shift) if shift >= -31 else (0, 0)


def fixed_points(ratios: Sequence[float]) -> tuple[Any, Any]:
    """The multipliers and the shifts of several numbers: s32 arrays."""
    pairs = np.array([fixed_point(r) for r in ratios], np.int32).reshape(-1, 2)
    return pairs[:, 0].copy(), pairs[:, 1].copy()


def requantized(v: Any, multiplier: Any, shift: Any) -> Any:
    """v * multiplier / 2^31 * 2^shift of s32 arrays: ag_requantized."""
    v, multiplier, shift = (np.asarray(a, np.int64) for a in (v, multiplier, shift))
    high = high_word((v << np.maximum(shift, 0)) * multiplier)
    return divided(high, np.maximum(-shift, 0)).astype(np.int32)


def high_word(v: Any) -> Any:
    """v / 2^31 of 64 bits, rounded to an integer, halves up: ag_high_word."""
    return (v + (1 << 30)) >> 31


def divided(v: Any, right: Any) -> Any:
    """v / 2^right of 64 bits, rounded to an integer, halves away from 0: ag_divided."""
    mask = (np.int64(1) << right) - 1
    return (v >> right) + ((v & mask) > (mask >> 1) + (v < 0))


def sums_of(weights: Any, zero_point: int) -> tuple[Any, Any]:
    """The least and the greatest sum of (x - zero_point) * weights over all s8 x, for each element of the first axis of
    the weights."""
    rows = np.asarray(weights, np.int64).reshape(len(weights), -1)
    ends = np.stack([rows * (LOW - zero_point), rows * (HIGH - zero_point)])
    return ends.min(0).sum(1), ends.max(0).sum(1)


def sums_of_any(terms: int, zero_point: int) -> tuple[Any, Any]:
    """Bounds of a sum of so many terms (x - zero_point) * weight, over all s8 x and all s8 weights."""
    worst = np.int64(terms * -LOW * max(zero_point - LOW, HIGH - zero_point))
    return -worst, worst


def within_sums(bias: Any, sums: tuple[Any, Any]) -> Any:
    """Biases of output channels as s32, limited so that adding them to the sums of products does not overflow; `sums`:
    the least and the greatest sums."""
    least, greatest = sums
    return np.clip(bias, -LARGEST_SUM - 1 - least, LARGEST_SUM - greatest).astype(np.int32)


def check_sums(bias: Any, sums: tuple[Any, Any], shift: Any) -> None:
    """Raises ShapeError unless all sums, shifted left, have 32 bits."""
    least, greatest = (s + bias for s in sums)
    check_bits(np.maximum(-1 - least, greatest), shift)


def check_bits(bound: Any, shift: Any) -> None:
    """Raises ShapeError unless numbers between -1 - bound and bound, shifted left, have 32 bits."""
    worst = float(np.max(bound * np.exp2(np.maximum(shift, 0))))
    if worst > LARGEST_SUM:
        raise ShapeError(
            f"a sum may be {worst:.10g}, which has more than 32 bits; use a larger scale of the result, a smaller bias "
            "or smaller weights"
        )
