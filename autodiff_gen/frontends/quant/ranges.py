"""Calibration: the range of each float of a network over the user's data, and the quantisation that covers it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ...errors import ModelError
from ...functional.quantized_arguments import array_of
from ...ir.node import Value, topological
from ...ir.quantization import HIGH, LEAST_SCALE, LOW, Quantization

Ranges: TypeAlias = Mapping[int, tuple[float, float]]  # of a graph's values, by their position in it
_KEPT = 1 << 16  # elements that "percentile" and "mse" sample from a larger tensor
_TAIL = 0.01  # percent of the elements that "percentile" leaves out at either end
_SHRUNK = 40  # ranges that "mse" tries


def covering(low: float, high: float) -> Quantization:
    """The quantisation of the range from `low` to `high`, extended to contain 0, by all 256 integers."""
    low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        high = 1.0  # a tensor that is always 0
    scale = max(float(np.float32((high - low) / (HIGH - LOW))), LEAST_SCALE)
    return Quantization((scale,), int(np.clip(round(LOW - low / scale), LOW, HIGH)))


def integer(limit: float, of: Quantization, beyond: int = 0) -> int:
    """The integer for a number, which may be infinite; limited to s8 and `beyond` more integers at each end."""
    q = np.rint(np.clip(limit / of.scale, -1e6, 1e6)) + of.zero_point
    return int(np.clip(q, LOW - beyond, HIGH + beyond))


def quantized(array: Any, of: Quantization) -> Any:
    """The integers for an array; LOW for NaN, as F.quantize gives."""
    q = np.rint(array / of.scale) + of.zero_point
    return np.where(q > LOW, np.minimum(q, HIGH), LOW).astype(np.int8)


def _minmax(x: Any) -> tuple[float, float]:
    return float(x.min()), float(x.max())


def _percentile(x: Any) -> tuple[float, float]:
    low, high = np.percentile(_some(x), (_TAIL, 100 - _TAIL))
    return float(low), float(high)


def _mse(x: Any) -> tuple[float, float]:
    """The range with the least squared error, among _SHRUNK parts of the whole range."""
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


def range_of(x: Any, method: str) -> tuple[float, float]:
    """The range of a tensor; infinite where an element is not finite."""
    return METHODS[method](x) if np.isfinite(x).all() else (-math.inf, math.inf)


def samples_of(what: str, x: Any) -> Any:
    """The samples as float32. Raises ModelError for data that is empty, not finite or no numbers."""
    array = array_of(x)
    if array.dtype.kind not in "fiub":
        raise ModelError(
            f"{what} must be an array of numbers [samples, ...], not {type(x).__name__} of {array.dtype}"
        )
    if array.ndim < 2 or array.size == 0:
        raise ModelError(f"{what} must be [samples, ...], not {list(array.shape)}")
    with np.errstate(over="ignore"):
        array = array.astype(np.float32)
    if not np.isfinite(array).all():
        raise ModelError(f"{what} must be finite")
    return array


def check_calibration(x: Any, method: str) -> Any:
    """The calibration data as float32. Raises ModelError for an unknown method, and for data that is empty, constant or
    not finite."""
    if method not in list(METHODS):
        raise ModelError(f"quantize: no method {method!r}; there are {', '.join(METHODS)}")
    array = samples_of("quantize: the calibration data", x)
    if array.min() == array.max():
        raise ModelError(
            f"quantize: the calibration data is constant, {array.min():g}: give samples as the network will see them"
        )
    return array


def values_of(result: Value) -> list[Value]:
    """The values of a graph in an order that depends only on its structure."""
    return [v for node in topological([result]) for v in node.results]
