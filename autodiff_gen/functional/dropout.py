"""Dropout, whose masks are drawn on the device by counter: the same there as on the host, and again in the backward
pass rather than kept."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import init
from ..ir.build import apply, make_state
from ..ir.graph import State
from ..ir.node import Value
from ..ir.types import Shape, Type, plain, u32
from .arguments import as_value, refusal, torch_lacks
from .elementwise import ge, where
from .modes import by_mode, with_updates
from .shapes import squeeze, unsqueeze

# The number of training steps so far, in every model that draws random numbers; made once, so that all masks of a
# step read the same number and a model has one such state.
_BEFORE = make_state(State("random.step", Type(u32, ()), init.zeros(()), trainable=False, role="counter"))
_NOW = apply("add", _BEFORE, 1)


def random_step() -> Value:
    """The number of training steps before this one, u32[]: the state "random.step" of every model with dropout. A
    plain function that computes dropout takes it as an input."""
    return _BEFORE


@torch_lacks(inplace=False)
def dropout(input: Any, p: float = 0.5, training: bool = True, *, seed: int | None = None) -> Value:
    """Srivastava et al. 2014: each element is 0 with probability p, else divided by 1 - p, while the model trains; the
    input itself in evaluation.

    training=False: the input itself always. Element i (row-major) of step k = 1, 2, ... is dropped where
    rand_u32(key, k, i) < p * 2^32; the key is `seed`, or follows from the position among the model's dropouts.
    """
    x = as_value(input)
    return _dropped("dropout", x, x.shape, p, training, seed)


@torch_lacks(inplace=False)
def dropout1d(input: Any, p: float = 0.5, training: bool = True, *, seed: int | None = None) -> Value:
    """dropout of whole channels of input [N, C, L] or [C, L]."""
    x = as_value(input)
    if x.ndim == 2:
        return squeeze(dropout1d(unsqueeze(x, 0), p, training, seed=seed), 0)
    if x.ndim != 3:
        raise refusal("dropout1d", [x], "the input must be [N, C, L] or [C, L]")
    return _dropped("dropout1d", x, (*x.shape[:2], 1), p, training, seed)


@torch_lacks(inplace=False)
def dropout2d(input: Any, p: float = 0.5, training: bool = True, *, seed: int | None = None) -> Value:
    """dropout of whole channels of input [N, C, H, W]."""
    x = as_value(input)
    if x.ndim != 4:
        raise refusal("dropout2d", [x], "the input must be [N, C, H, W]")
    return _dropped("dropout2d", x, (*x.shape[:2], 1, 1), p, training, seed)


def _dropped(name: str, x: Value, shape: Shape, p: float, training: bool, seed: int | None) -> Value:
    """x times noise of `shape`, which broadcasts to x."""
    if x.dtype.kind != "f":
        raise refusal(name, [x], "needs a float")
    p, seed = plain(p), plain(seed)
    if isinstance(p, bool) or not isinstance(p, int | float) or not 0 <= p <= 1:
        raise refusal(name, [x], f"p={p!r} must be a probability, from 0 to 1")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32):
        raise refusal(name, [x], f"seed={seed!r} must be a whole number from 0 to 2^32 - 1")
    if p == 0 or not training:
        return x
    threshold = math.floor(p * 2.0**32)
    if p == 1 or threshold == 0:
        return by_mode(x * 0.0, x) if p == 1 else x
    drawn = apply("rand_u32", _NOW, apply("iota", size=shape), key=seed)
    noise = where(ge(drawn, np.uint32(threshold)), 1.0 / (1.0 - p), 0.0)
    return by_mode(with_updates(x * noise, {_BEFORE: _NOW}), x)
