"""Calibration: the range of each float of a network over the user's data, and the quantisation that covers it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import ModelError
from ...ir.quantization import HIGH, LOW, Quantization

_KEPT = 1 << 16  # elements of a tensor that are looked at where not all are
_TAIL = 0.01  # percent of the elements that "percentile" leaves out at either end
_SHRUNK = 40  # ranges that "mse" tries


def covering(low: float, high: float) -> Quantization:
    """The quantisation of the range from `low` to `high`, which is made to contain 0, by all 256 integers."""
    low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        high = 1.0  # a tensor that is always 0
    scale = float(np.float32((high - low) / (HIGH - LOW)))
    return Quantization((scale,), int(np.clip(round(LOW - low / scale), LOW, HIGH)))


def integer(limit: float, of: Quantization) -> int:
    """The integer for a number, which may be infinite."""
    return int(np.clip(np.rint(np.clip(limit / of.scale, -1e6, 1e6)) + of.zero_point, LOW, HIGH))


def quantized(array: Any, of: Quantization) -> Any:
    """The integers for an array."""
    return np.clip(np.rint(array / of.scale) + of.zero_point, LOW, HIGH).astype(np.int8)


def _minmax(x: Any) -> tuple[float, float]:
    return float(x.min()), float(x.max())


def _percentile(x: Any) -> tuple[float, float]:
    low, high = np.percentile(_some(x), (_TAIL, 100 - _TAIL))
    return float(low), float(high)


def _mse(x: Any) -> tuple[float, float]:
    """The range with the least squared error, among those that shrink the whole one."""
    some = _some(x)
    low, high = _minmax(x)

    def error(part: float) -> float:
        of = covering(part * low, part * high)
        q = quantized(some, of).astype(np.float32)
        return float(np.mean((of.scale * (q - of.zero_point) - some) ** 2))

    best = min(np.arange(_SHRUNK, 0, -1) / _SHRUNK, key=error)
    return float(best * low), float(best * high)


def _some(x: Any) -> Any:
    flat = x.reshape(-1)
    return flat if flat.size <= _KEPT else np.random.default_rng(1).choice(flat, _KEPT, replace=False)


METHODS: Mapping[str, Callable[[Any], tuple[float, float]]] = {
    "minmax": _minmax,
    "percentile": _percentile,
    "mse": _mse,
}


def joined(ranges: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The range that contains all."""
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def check_calibration(x: Any, method: str) -> Any:
    """The calibration data as float32. Raises ModelError for data that is empty, constant or not finite."""
    if method not in METHODS:
        raise ModelError(f"quantize: no method {method!r}; there are {', '.join(METHODS)}")
    array = np.asarray(x, np.float32)
    if array.ndim < 2 or array.shape[0] == 0:
        raise ModelError(f"quantize: the calibration data must be [samples, ...], not {list(array.shape)}")
    if not np.isfinite(array).all():
        raise ModelError("quantize: the calibration data must be finite")
    if array.min() == array.max():
        raise ModelError(
            f"quantize: the calibration data is constant, {array.min():g}: give samples of what the network will see"
        )
    return array
