"""Random numbers by counter, the NumPy counterpart of `runtime/ag_rng.h`: the same bits as on the board, in any
order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

_MASK = 0xFFFFFFFF


def _mix(x: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """A bijection of 32 bits; arithmetic modulo 2^32. Works in place on its own copy."""
    x = x.copy()
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x21F0AAAD)
    x ^= x >> np.uint32(15)
    x *= np.uint32(0x735A2D97)
    x ^= x >> np.uint32(15)
    return x


def _word(value: Any) -> NDArray[np.uint32]:
    """Integers of any kind modulo 2^32, as an array: NumPy's scalars would warn where they wrap."""
    if isinstance(value, int):
        return np.array([value & _MASK], np.uint32)
    array = np.asarray(value)
    if array.dtype.kind not in "iu":
        raise TypeError(f"rng: key, counter and index are integers, got {array.dtype}")
    return np.atleast_1d(array.astype(np.uint32))


def rand_u32(key: ArrayLike, counter: ArrayLike, index: ArrayLike) -> NDArray[np.uint32]:
    """32 random bits for each of `index`: `ag_rand_u32`. Integers, broadcast together, modulo 2^32."""
    shape = np.broadcast_shapes(np.shape(key), np.shape(counter), np.shape(index))
    k, c = _word(key), _word(counter)
    s = _mix(_mix(k + np.uint32(0x9E3779B9)) ^ c)
    t = _mix(_mix(c + np.uint32(0x7F4A7C15)) ^ k)
    return _mix(_mix(_word(index) ^ s) + t).reshape(shape)


def unit(key: ArrayLike, counter: ArrayLike, index: ArrayLike) -> NDArray[np.float32]:
    """Uniform in [0, 1), multiples of 2^-24, float32: `ag_unitf`."""
    return (rand_u32(key, counter, index) >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)


def uniform(key: ArrayLike, counter: ArrayLike, index: ArrayLike, bound: float) -> NDArray[np.float32]:
    """Uniform in [-bound, bound), float32: `ag_uniformf`. `bound` is rounded to float32 first."""
    return (np.float32(2) * unit(key, counter, index) - np.float32(1)) * np.float32(bound)


def normal(key: ArrayLike, counter: int, index: ArrayLike) -> NDArray[np.float32]:
    """Normal with mean 0 and variance 1, to a good approximation, float32: `ag_normalf`."""
    total = np.zeros(np.shape(index), np.int32)
    for k in range(6):
        r = rand_u32(key, counter + k, index)
        total += (r >> np.uint32(16)).astype(np.int32) + (r & np.uint32(0xFFFF)).astype(np.int32)
    return (total - np.int32(6 * 65535)).astype(np.float32) * np.float32(2.0**-16)
