"""Losses as modules, with the names, arguments and defaults of torch.nn; the formulas are in `functional`.

`reduction` is "mean", "sum" or "none"; a mean over the batch is divided by n at run time.
"""

from __future__ import annotations

from typing import Any

from .. import functional as F
from ..errors import ModelError
from ..functional import torch_lacks
from ..functional.arguments import TensorLike
from ..ir.node import Value
from .module import Module


class Loss(Module):
    """Base of the losses."""

    takes_classes = False  # whether the target is class indices, for Model.supervised
    reductions: tuple[str, ...] = ("mean", "sum", "none")

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        if reduction not in self.reductions:
            known = ", ".join(f'"{r}"' for r in self.reductions)
            raise ModelError(f"{type(self).__name__}: reduction={reduction!r}; known: {known}")
        self.reduction = reduction


class NLLLoss(Loss):
    """Negative log-likelihood of log-probabilities f32[N, C, ...] and class indices [N, ...]; see F.nll_loss."""

    takes_classes = True

    @torch_lacks(size_average=None, reduce=None)
    def __init__(self, weight: Any = None, *, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight, self.ignore_index = weight, ignore_index

    def forward(self, input: TensorLike, target: TensorLike) -> Value:
        return F.nll_loss(
            input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction
        )


class CrossEntropyLoss(Loss):
    """Cross-entropy of scores f32[N, C, ...] and class indices [N, ...] or probabilities of the scores' shape; see
    F.cross_entropy."""

    takes_classes = True

    @torch_lacks(size_average=None, reduce=None)
    def __init__(
        self,
        weight: Any = None,
        *,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(reduction)
        self.weight, self.ignore_index, self.label_smoothing = weight, ignore_index, label_smoothing

    def forward(self, input: TensorLike, target: TensorLike) -> Value:
        return F.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class MSELoss(Loss):
    """(input - target)^2, both of one shape."""

    @torch_lacks(size_average=None, reduce=None)
    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction)

    def forward(self, input: TensorLike, target: TensorLike) -> Value:
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(Loss):
    """|input - target|, both of one shape."""

    @torch_lacks(size_average=None, reduce=None)
    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction)

    def forward(self, input: TensorLike, target: TensorLike) -> Value:
        return F.l1_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(Loss):
    """Quadratic up to `beta`, then linear with slope 1; see F.smooth_l1_loss."""

    @torch_lacks(size_average=None, reduce=None)
    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction)
        self.beta = beta

    def forward(self, input: TensorLike, target: TensorLike) -> Value:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(Loss):
    """Quadratic up to `delta`, then linear with slope `delta`; see F.huber_loss."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta

    def forward(self, input: TensorLike, target: TensorLike) -> Value:
        return F.huber_loss(input, target, self.reduction, self.delta)


class BCELoss(Loss):
    """Binary cross-entropy of probabilities and targets in [0, 1] of one shape; see F.binary_cross_entropy."""

    @torch_lacks(size_average=None, reduce=None)
    def __init__(self, weight: Any = None, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = weight

    def forward(self, input: TensorLike, target: TensorLike) -> Value:
        return F.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(Loss):
    """Binary cross-entropy of scores and targets in [0, 1] of one shape; see F.binary_cross_entropy_with_logits."""

    @torch_lacks(size_average=None, reduce=None)
    def __init__(self, weight: Any = None, *, reduction: str = "mean", pos_weight: Any = None) -> None:
        super().__init__(reduction)
        self.weight, self.pos_weight = weight, pos_weight

    def forward(self, input: TensorLike, target: TensorLike) -> Value:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )


class KLDivLoss(Loss):
    """Kullback-Leibler divergence of log-probabilities and probabilities (their logarithms with log_target); see
    F.kl_div."""

    reductions = ("mean", "batchmean", "sum", "none")

    @torch_lacks(size_average=None, reduce=None)
    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction)
        self.log_target = log_target

    def forward(self, input: TensorLike, target: TensorLike) -> Value:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class CosineEmbeddingLoss(Loss):
    """Cosine embedding loss of pairs f32[N, D] and targets [N], 1 (similar) or -1 (dissimilar); see
    F.cosine_embedding_loss."""

    @torch_lacks(size_average=None, reduce=None)
    def __init__(self, margin: float = 0.0, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input1: TensorLike, input2: TensorLike, target: TensorLike) -> Value:
        return F.cosine_embedding_loss(input1, input2, target, self.margin, reduction=self.reduction)


class HingeEmbeddingLoss(Loss):
    """Hinge embedding loss of distances and targets 1 or -1 of one shape; see F.hinge_embedding_loss."""

    @torch_lacks(size_average=None, reduce=None)
    def __init__(self, margin: float = 1.0, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input: TensorLike, target: TensorLike) -> Value:
        return F.hinge_embedding_loss(input, target, self.margin, reduction=self.reduction)


class TripletMarginLoss(Loss):
    """Triplet margin loss of anchors, positives and negatives f32[N, D]; see F.triplet_margin_loss."""

    @torch_lacks(size_average=None, reduce=None)
    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        *,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction)
        self.margin, self.p, self.eps, self.swap = margin, p, eps, swap

    def forward(self, anchor: TensorLike, positive: TensorLike, negative: TensorLike) -> Value:
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            self.margin,
            self.p,
            self.eps,
            self.swap,
            reduction=self.reduction,
        )
