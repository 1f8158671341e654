"""Similarities and distances of pairs as layers, as in torch.nn."""

from __future__ import annotations

from .. import functional as F
from ..functional.arguments import TensorLike
from ..ir.node import Value
from .module import Module


class CosineSimilarity(Module):
    """F.cosine_similarity of two values along `dim`."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: TensorLike, x2: TensorLike) -> Value:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """F.pairwise_distance of two values along the last axis."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: TensorLike, x2: TensorLike) -> Value:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
