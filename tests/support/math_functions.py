"""The functions of ag_math.h over arrays, beside float64."""

from __future__ import annotations

import ctypes
import math

import numpy as np

UNARY = ["expf", "logf", "expm1f", "log1pf", "tanhf", "sigmoidf", "sinf", "cosf", "erff", "rintf"]
NAMES = [*UNARY, "powf", "atan2f"]
TINY, SMALL = 2.0**-149, 2.0**-126  # the smallest float, the smallest normal float
INF, NAN = np.inf, np.nan


def sigmoid(x):
    z = np.exp(-np.abs(x))
    return np.where(x < 0, z, 1) / (1 + z)


def erf(x):
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), np.float64)


EXACT = {
    "expf": np.exp,
    "logf": np.log,
    "expm1f": np.expm1,
    "log1pf": np.log1p,
    "tanhf": np.tanh,
    "sigmoidf": sigmoid,
    "sinf": np.sin,
    "cosf": np.cos,
    "erff": erf,
    "rintf": np.rint,
    "powf": np.power,
    "atan2f": np.arctan2,
}


def call(library, name, x, y=None):
    """The C function over float32 arrays."""
    x = np.ascontiguousarray(x, np.float32)
    y = np.zeros_like(x) if y is None else np.ascontiguousarray(y, np.float32)
    result = np.empty_like(x)
    data = [ctypes.c_void_p(v.ctypes.data) for v in (x, y, result)]
    library.sweep_map(NAMES.index(name), *data, x.size)
    return result


def exact(name, x, y=None):
    """The same in float64."""
    arguments = (x.astype(np.float64),) if y is None else (x.astype(np.float64), y.astype(np.float64))
    with np.errstate(all="ignore"):
        return EXACT[name](*arguments)


def worst_ulp(got, want, arguments):
    """The greatest error in units of the last place; infinities, NaN and the sign of zero must be right."""
    with np.errstate(over="ignore"):
        rounded = want.astype(np.float32)
    special = ~np.isfinite(rounded) | (want == 0)
    right = (got.view(np.uint32) == rounded.view(np.uint32)) | (np.isnan(got) & np.isnan(rounded))
    assert np.all(right[special]), f"wrong special value at {[a[special & ~right][:3] for a in arguments]}"
    got, want = got[~special].astype(np.float64), want[~special]
    _, exponent = np.frexp(want)
    return float(np.ldexp(np.abs(got - want), 24 - np.maximum(exponent, -125)).max())


def every(stride):
    """Floats at equal distances in their bits: all signs and exponents, infinity and (quiet) NaN too."""
    x = np.arange(0, 2**32, stride, dtype=np.uint64).astype(np.uint32).view(np.float32)
    return np.where(np.isnan(x), np.float32(NAN), x)
