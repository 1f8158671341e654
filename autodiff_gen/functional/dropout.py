"""Dropout with counter-based random masks: device and host draw the same masks, and the backward pass recomputes them
instead of reading stored ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import init
from ..ir.build import apply, make_state
from ..ir.graph import State
from ..ir.names import with_role
from ..ir.node import Value
from ..ir.types import Shape, Type, plain, u32
from .arguments import TensorLike, as_value, shape_error, torch_lacks
from .elementwise import ge, where
from .modes import by_mode, with_updates
from .shapes import squeeze, unsqueeze

__all__ = ["dropout", "dropout1d", "dropout2d", "random_step"]

# The number of training steps so far, a state of every model with random numbers; one state for all models, so that all
# masks of a step read the same number.
_BEFORE = make_state(State("random.step", Type(u32, ()), init.zeros(()), trainable=False, role="counter"))
_NOW = with_role(apply("add", _BEFORE, 1), "count")


def random_step() -> Value:
    """The number of training steps before this one, u32[]: the state "random.step" of every model with random numbers.
    An `ag.function(..., training=True)` with random numbers takes it as an input."""
    return _BEFORE


def random_bits(shape: Shape, key: int) -> tuple[Value, dict[State, Value]]:
    """32 random bits for each element in this step, u32 of `shape`, and the update of the step count."""
    return drawn_bits(shape, key), {_BEFORE.node.attrs["state"]: _NOW}


def drawn_bits(shape: Shape, key: int | None) -> Value:
    """32 random bits for each element in this step, u32 of `shape`; pass the values computed from them to `counted`.
    key None: derived later from the position of the draw in the model."""
    return apply("rand_u32", _NOW, apply("iota", size=shape), key=key)


def counted(x: Value) -> Value:
    """x; a training step that computes x increments the step count, so that the next step has other bits."""
    return with_updates(x, {_BEFORE: _NOW})


def checked_seed(name: str, x: Value, seed: Any) -> int | None:
    """The seed as a key, or None. Raises ShapeError, which names x, for a seed that is not a 32-bit integer."""
    seed = plain(seed)
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32):
        raise shape_error(name, [x], f"seed={seed!r} must be an integer from 0 to 2^32 - 1")
    return seed


@torch_lacks(inplace=False)
def dropout(input: TensorLike, p: float = 0.5, training: bool = True, *, seed: int | None = None) -> Value:
    """Srivastava et al. 2014: in training mode each element is 0 with probability p, otherwise divided by 1 - p; in
    evaluation mode the identity.

    training=False: the identity in both modes. Element i (row-major) of step k = 1, 2, ... is 0 if
    rand_u32(key, k, i) < floor(p * 2^32). The key is `seed`; by default it is derived from the position of this draw
    among the random draws of the model.
    """
    x = as_value(input)
    return _dropped("dropout", x, x.shape, p, training, seed)


@torch_lacks(inplace=False)
def dropout1d(input: TensorLike, p: float = 0.5, training: bool = True, *, seed: int | None = None) -> Value:
    """Dropout of whole channels of input [N, C, L] or [C, L]."""
    x = as_value(input)
    if x.ndim == 2:
        return squeeze(dropout1d(unsqueeze(x, 0), p, training, seed=seed), 0)
    if x.ndim != 3:
        raise shape_error("dropout1d", [x], "the input must be [N, C, L] or [C, L]")
    return _dropped("dropout1d", x, (*x.shape[:2], 1), p, training, seed)


@torch_lacks(inplace=False)
def dropout2d(input: TensorLike, p: float = 0.5, training: bool = True, *, seed: int | None = None) -> Value:
    """Dropout of whole channels of input [N, C, H, W]."""
    x = as_value(input)
    if x.ndim != 4:
        raise shape_error("dropout2d", [x], "the input must be [N, C, H, W]")
    return _dropped("dropout2d", x, (*x.shape[:2], 1, 1), p, training, seed)


def _dropped(name: str, x: Value, shape: Shape, p: float, training: bool, seed: int | None) -> Value:
    """x times a scaled mask of `shape`, which broadcasts to x."""
    if x.dtype.kind != "f":
        raise shape_error(name, [x], "needs a float")
    p, seed = plain(p), checked_seed(name, x, seed)
    if isinstance(p, bool) or not isinstance(p, int | float) or not 0 <= p <= 1:
        raise shape_error(name, [x], f"p={p!r} must be a probability, from 0 to 1")
    if p == 0 or not training:
        return x
    threshold = math.floor(p * 2.0**32)
    if p == 1 or threshold == 0:
        return by_mode(x * 0.0, x) if p == 1 else x
    mask = where(ge(drawn_bits(shape, seed), np.uint32(threshold)), 1.0 / (1.0 - p), 0.0)
    return by_mode(counted(x * mask), x)
