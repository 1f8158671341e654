"""Counter-based random numbers in training mode, which device and host draw alike; in evaluation mode their mean."""

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
    """Uniform numbers in [0, 1), f32 of shape `size`, new in every training step; unlike in PyTorch, 0.5 in evaluation
    mode. An extent may be the batch, x.shape[0]. `seed` selects the stream, as in F.dropout."""
    return _drawn(size, 0.5, _uniform, seed)


@torch_lacks(**_LACKS)
def randn(*size: Any, seed: int | None = None) -> Value:
    """Normal numbers of mean 0 and variance 1, f32 of shape `size`, new in every training step; unlike in PyTorch, 0 in
    evaluation mode. An extent may be the batch, x.shape[0]. `seed` selects the stream, as in F.dropout; randn uses two
    streams, seed and seed + 1."""
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
    """The first of the two numbers of Box and Muller 1958."""
    distance = sqrt(log(1.0 - _uniform(shape, seed)) * -2.0)
    return distance * cos(_uniform(shape, None if seed is None else (seed + 1) % 2**32) * math.tau)
