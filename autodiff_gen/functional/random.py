"""Random numbers in training mode, by counter, so that device and host draw the same; in evaluation mode their mean."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..ir.node import Value
from ..ir.types import Shape
from .arguments import TensorLike, as_value, torch_lacks
from .creation import full
from .dropout import checked_seed, counted, drawn_bits
from .elementwise import cos, log, minimum, sqrt, to
from .modes import by_mode

__all__ = ["rand", "rand_like", "randn", "randn_like"]

_LACKS = {
    "generator": None,
    "out": None,
    "dtype": None,
    "layout": None,
    "device": None,
    "requires_grad": False,
}
_LIKE = {"dtype": None, "layout": None, "device": None, "requires_grad": False, "memory_format": None}


@torch_lacks(**_LACKS)
def rand(*size: Any, seed: int | None = None) -> Value:
    """Numbers that are equally likely from 0 to 1, f32 of shape `size`, new ones in every training step; in evaluation
    mode 0.5, their mean. An extent may be the batch, x.shape[0]. `seed`: the stream, as in F.dropout."""
    return _drawn(size, 0.5, _uniform, seed)


@torch_lacks(**_LACKS)
def randn(*size: Any, seed: int | None = None) -> Value:
    """Normal numbers of mean 0 and variance 1, f32 of shape `size`, new ones in every training step; in evaluation mode
    0, their mean. An extent may be the batch, x.shape[0]. `seed`: the stream, as in F.dropout; two seeds are needed,
    this one and the next."""
    return _drawn(size, 0.0, _normal, seed)


@torch_lacks(**_LIKE)
def rand_like(input: TensorLike, *, seed: int | None = None) -> Value:
    """F.rand in the shape of input."""
    return rand(as_value(input).shape, seed=seed)


@torch_lacks(**_LIKE)
def randn_like(input: TensorLike, *, seed: int | None = None) -> Value:
    """F.randn in the shape of input."""
    return randn(as_value(input).shape, seed=seed)


def _drawn(
    size: tuple[Any, ...], mean: float, draw: Callable[[Shape, int | None], Value], seed: Any
) -> Value:
    """The result of `draw` for a shape and a seed; in evaluation mode the mean."""
    given = size[0] if len(size) == 1 and isinstance(size[0], tuple | list) else size
    in_evaluation = full(given, mean)
    return by_mode(
        counted(draw(in_evaluation.shape, checked_seed("rand", in_evaluation, seed))), in_evaluation
    )


def _uniform(shape: Shape, seed: int | None) -> Value:
    return minimum(to(drawn_bits(shape, seed), "f32") * 2.0**-32, 1.0 - 2.0**-24)


def _normal(shape: Shape, seed: int | None) -> Value:
    """Box and Muller 1958: the first coordinate of a point by its distance and its angle."""
    distance = sqrt(log(1.0 - _uniform(shape, seed)) * -2.0)
    return distance * cos(_uniform(shape, None if seed is None else (seed + 1) % 2**32) * math.tau)
