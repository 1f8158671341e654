"""Losses with a margin between scores, negative log-likelihoods of distributions, and CTC, as in torch.nn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import functional as F
from ..functional import torch_lacks
from ..functional.arguments import TensorLike
from ..ir.node import Value
from .losses import Loss


class MarginRankingLoss(Loss):
    """Margin ranking loss of two scores and targets 1 or -1 of one shape; see F.margin_ranking_loss."""

    @torch_lacks(size_average=None, reduce=None)
    def __init__(self, margin: float = 0.0, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input1: TensorLike, input2: TensorLike, target: TensorLike) -> Value:
        return F.margin_ranking_loss(input1, input2, target, self.margin, reduction=self.reduction)


class SoftMarginLoss(Loss):
    """Soft margin loss of scores and targets 1 or -1 of one shape; see F.soft_margin_loss."""

    @torch_lacks(size_average=None, reduce=None)
    def __init__(self, *, reduction: str = "mean") -> None:
        super().__init__(reduction)

    def forward(self, input: TensorLike, target: TensorLike) -> Value:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(Loss):
    """Multi-label soft margin loss of scores and targets in [0, 1], [N, C]; see F.multilabel_soft_margin_loss."""

    @torch_lacks(size_average=None, reduce=None)
    def __init__(self, weight: Any = None, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = weight

    def forward(self, input: TensorLike, target: TensorLike) -> Value:
        return F.multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction)


class MultiMarginLoss(Loss):
    """Multi-class margin loss of scores f32[N, C] and class indices [N]; see F.multi_margin_loss."""

    takes_classes = True

    @torch_lacks(size_average=None, reduce=None)
    def __init__(
        self, p: int = 1, margin: float = 1.0, weight: Any = None, *, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction)
        self.p, self.margin, self.weight = p, margin, weight

    def forward(self, input: TensorLike, target: TensorLike) -> Value:
        return F.multi_margin_loss(input, target, self.p, self.margin, self.weight, reduction=self.reduction)


class TripletMarginWithDistanceLoss(Loss):
    """TripletMarginLoss with any distance; see F.triplet_margin_with_distance_loss."""

    def __init__(
        self,
        *,
        distance_function: Callable[[Any, Any], Value] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction)
        self.distance_function, self.margin, self.swap = distance_function, margin, swap

    def forward(self, anchor: TensorLike, positive: TensorLike, negative: TensorLike) -> Value:
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


class GaussianNLLLoss(Loss):
    """Gaussian negative log-likelihood of means, targets and variances; see F.gaussian_nll_loss."""

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.full, self.eps = full, eps

    def forward(self, input: TensorLike, target: TensorLike, var: TensorLike) -> Value:
        return F.gaussian_nll_loss(input, target, var, self.full, self.eps, self.reduction)


class PoissonNLLLoss(Loss):
    """Poisson negative log-likelihood of rates, or their logarithms, and counts; see F.poisson_nll_loss."""

    @torch_lacks(size_average=None, reduce=None)
    def __init__(
        self, log_input: bool = True, full: bool = False, *, eps: float = 1e-8, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def forward(self, input: TensorLike, target: TensorLike) -> Value:
        return F.poisson_nll_loss(
            input, target, self.log_input, self.full, self.eps, reduction=self.reduction
        )


class CTCLoss(Loss):
    """Connectionist temporal classification loss of log-probabilities f32[T, N, C], label sequences [N, S], and the
    lengths of both; see F.ctc_loss."""

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def forward(
        self, log_probs: TensorLike, targets: TensorLike, input_lengths: Any, target_lengths: Any
    ) -> Value:
        return F.ctc_loss(
            log_probs,
            targets,
            input_lengths,
            target_lengths,
            self.blank,
            self.reduction,
            self.zero_infinity,
        )
