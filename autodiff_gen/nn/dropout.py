"""Dropout layers, with the arguments of torch.nn; `seed` selects the stream of random numbers (F.dropout)."""

from __future__ import annotations

from collections.abc import Callable

from .. import functional as F
from ..errors import ModelError
from ..functional import torch_lacks
from ..functional.arguments import TensorLike
from ..ir.node import Value
from ..ir.types import plain
from .module import Module


def probability(layer: str, p: float) -> float:
    """p. Raises ModelError unless it is in [0, 1]."""
    p = plain(p)
    if isinstance(p, bool) or not isinstance(p, int | float) or not 0 <= p <= 1:
        raise ModelError(f"{layer}: p={p!r} must be a probability, from 0 to 1")
    return p


class _Dropout(Module):
    printed = "p= inplace=False"
    function: Callable[..., Value]

    @torch_lacks(inplace=False)
    def __init__(self, p: float = 0.5, *, seed: int | None = None) -> None:
        super().__init__()
        self.p, self.seed = probability(type(self).__name__, p), seed

    def forward(self, input: TensorLike) -> Value:
        return type(self).function(input, self.p, self.training, seed=self.seed)


class Dropout(_Dropout):
    """F.dropout: in training mode elements are 0 with probability p."""

    function = F.dropout


class Dropout1d(_Dropout):
    """F.dropout1d: in training mode whole channels of [N, C, L] or [C, L] are 0 with probability p."""

    function = F.dropout1d


class Dropout2d(_Dropout):
    """F.dropout2d: in training mode whole channels of [N, C, H, W] are 0 with probability p."""

    function = F.dropout2d
