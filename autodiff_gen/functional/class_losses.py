"""Losses over classes, whose target is class indices or probabilities."""

from __future__ import annotations

from typing import Any

from ..errors import ShapeError
from ..ir.build import apply
from ..ir.index_ranges import range_of
from ..ir.names import with_role
from ..ir.node import CONST, Value
from ..ir.types import Dim, Size, plain, planned
from ..ops.axes.softmax import less_largest
from ..ops.axes.softmax import log_softmax as LOG_SOFTMAX
from .arguments import TensorLike, as_value, loss_function, shape_error, torch_lacks
from .custom_gradient import with_derivative
from .elementwise import eq, exp, log, logical_not, neg, to, where
from .index_limits import index_source
from .indexing import one_hot_of, pick
from .losses import number_of, reduced, weights_of
from .reductions import sum
from .shapes import broadcast_to, permute, reshape
from .softmax import log_softmax

__all__ = ["cross_entropy", "nll_loss"]


def classes_last(name: str, x: Value, target: Value) -> Value:
    """Scores [N, C, ...] as [N, ..., C]. Raises ShapeError unless the target has the shape [N, ...]."""
    if target.dtype.kind not in "iu":
        raise shape_error(name, [x, target], "the target must be class indices, of an integer dtype")
    y = permute(x, (0, *range(2, x.ndim), 1)) if x.ndim > 2 else x
    if x.ndim == 0 or target.shape != y.shape[:-1]:
        raise shape_error(
            name,
            [x, target],
            "scores [N, C] need a target [N], [N, C, d] a target [N, d], [C] a scalar; "
            f"got {list(target.shape)}",
        )
    return y


def class_weights(name: str, x: Value, weight: TensorLike) -> Value:
    """The weights of the classes of x [..., C]. Raises ShapeError unless they have the shape [C]."""
    w = weights_of(name, "weight", weight)
    if w.shape != x.shape[-1:]:
        raise shape_error(name, [x, w], f"weight must have one number per class, [{x.shape[-1]}]")
    return w


class _Chosen:
    """A target of class indices. `index`: the target, with 0 instead of an ignore_index that is out of range;
    `ignored`: the mask of ignored targets (None: no target is ignored); `weight`: the weight of each sample (None: 1
    for all); `table`: the weights of the classes."""

    def __init__(self, name: str, x: Value, t: Value, weight: Any, ignore_index: int) -> None:
        ignore_index = plain(ignore_index)
        if isinstance(ignore_index, bool) or not isinstance(ignore_index, int):
            raise ShapeError(f"{name}: ignore_index={ignore_index!r} must be an integer")
        classes = planned(x.shape)[-1]
        self.index = t
        self.ignored: Value | None = None
        self.weight: Value | None = None
        self.table: Value | None = None
        if _may_be(t, ignore_index):
            self.ignored = eq(t, ignore_index)
            if not 0 <= ignore_index < classes:
                self.index = where(self.ignored, 0, t)
        if weight is not None:
            self.table = class_weights(name, x, weight)
            self.weight = self.pick(broadcast_to(self.table, x.shape))
        if self.ignored is not None:
            counts = to(logical_not(self.ignored), "f32")
            self.weight = counts if self.weight is None else where(self.ignored, 0.0, self.weight)

    def pick(self, x: Value) -> Value:
        """x[..., target]; some element of x[...] where the target is ignored."""
        return with_role(pick(x, self.index), "of_target")

    def with_derivative(self, losses: Value, scores: Value, reduction: str = "none") -> Value:
        """`losses`, with their derivative with respect to the scores in closed form. losses: -log(softmax(scores)) at
        the targets, [N, ...], or their reduction; scores: f32[N, C, ...] or [C]."""
        rows = self.index.shape

        def derivative(d: Value) -> Value:
            if reduction == "mean":
                for extent in rows:
                    d = d / _number(extent)
            if reduction != "none":
                d = broadcast_to(d, rows)
            x = permute(scores, (0, *range(2, scores.ndim), 1)) if scores.ndim > 2 else scores
            # Negated as integers: the loop is vectorised; gcc makes a branch of `- (is_expected ? 1.0f : 0.0f)`.
            expected = with_role(to(neg(one_hot_of(self.index, x.shape[-1])), "f32"), "minus_expected")
            dx = (apply("softmax", x, axes=(x.ndim - 1,)) + expected) * reshape(d, (*rows, 1))
            return permute(dx, (0, x.ndim - 1, *range(1, x.ndim - 1))) if scores.ndim > 2 else dx

        return with_role(with_derivative(losses, scores, derivative), "nll")

    def reduced(self, name: str, losses: Value, reduction: str) -> Value:
        """The reduction of the losses of the samples that are not ignored; a mean is weighted."""
        if self.ignored is not None:
            losses = where(self.ignored, 0.0, losses)
        if reduction == "mean" and self.weight is not None:
            return sum(losses) / sum(self.weight)
        return reduced(name, losses, reduction)


def _number(extent: Size) -> Any:
    """An extent as a number; the run-time extent, as a value, if it follows the batch."""
    return apply("extent", extent=extent) if isinstance(extent, Dim) else extent


def _may_be(t: Value, number: int) -> bool:
    """Whether the target can contain this number."""
    source = index_source(t)
    if source.node.op is CONST:
        return bool((source.node.attrs["value"] == number).any())
    low, high = range_of(t)
    return low <= number <= high


def _scores_of(x: Value) -> Value | None:
    """The scores [N, C, ...] or [C] of several classes, if x is log_softmax of them."""
    classes = min(x.ndim, 2) - 1
    is_log_softmax = x.node.op is LOG_SOFTMAX and x.node.attrs["axes"] == (classes,)
    return x.node.operands[0] if is_log_softmax and x.shape[classes] != 1 else None


@torch_lacks(size_average=None, reduce=None)
@loss_function
def nll_loss(
    input: TensorLike,
    target: TensorLike,
    weight: TensorLike | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Value:
    """The negative log-probability of the target class, as torch.nn.functional.nll_loss.

    input: f32[N, C], [N, C, ...] or [C] log-probabilities; target: integer [N], [N, ...] or a scalar. `weight`: f32[C],
    the weights of the classes; the mean is weighted too. Targets equal to `ignore_index` are ignored; the generated
    function rejects other targets outside 0 to C - 1.
    """
    x, t = as_value(input), as_value(target)
    scores = _scores_of(x)
    x = classes_last("nll_loss", x, t)
    chosen = _Chosen("nll_loss", x, t, weight, ignore_index)
    if chosen.weight is None:
        loss = neg(reduced("nll_loss", chosen.pick(x), reduction))
        return loss if scores is None else chosen.with_derivative(loss, scores, reduction)
    losses = neg(chosen.pick(x))
    if scores is not None:
        losses = chosen.with_derivative(losses, scores)
    if chosen.table is not None:
        assert chosen.weight is not None
        losses = chosen.weight * losses
    return chosen.reduced("nll_loss", losses, reduction)


@torch_lacks(size_average=None, reduce=None)
@loss_function
def cross_entropy(
    input: TensorLike,
    target: TensorLike,
    weight: TensorLike | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Value:
    """Cross-entropy of softmax(input) and `target`, as torch.nn.functional.cross_entropy.

    input: f32[N, C], [N, C, ...] or [C] scores; target: integer class indices as for nll_loss, or probabilities of the
    input's shape. `weight` and `ignore_index` as for nll_loss; with probabilities there is no ignore_index, and the
    mean is not weighted. `label_smoothing`: the share of a uniform distribution that is mixed into the target
    (Szegedy et al. 2016).
    """
    name = "cross_entropy"
    x, t = as_value(input), as_value(target)
    smoothing = number_of(name, "label_smoothing", label_smoothing, 0.0, 1.0)
    if x.ndim and x.shape[min(x.ndim, 2) - 1] == 1:
        raise shape_error(
            name,
            [x, t],
            "of one class the loss is always 0; for yes or no of one score, use BCEWithLogitsLoss",
        )
    if t.dtype.kind == "f":
        return _of_probabilities(x, t, weight, ignore_index, reduction, smoothing)
    scores, x = x, classes_last(name, x, t)
    chosen = _Chosen(name, x, t, weight, ignore_index)
    axis = x.ndim - 1
    z = less_largest(x, (axis,))
    log_sum = with_role(log(with_role(sum(with_role(exp(z), "exp_shifted"), axis), "exp_sum")), "log_sum")
    losses = chosen.with_derivative(log_sum - chosen.pick(z), scores)
    if chosen.table is not None:
        assert chosen.weight is not None
        losses = chosen.weight * losses
    if smoothing:
        of_class = reshape(log_sum, (*log_sum.shape, 1)) - z
        total = sum(of_class if chosen.table is None else chosen.table * of_class, axis)
        losses = (1.0 - smoothing) * losses + (smoothing / _number(x.shape[-1])) * total
    return chosen.reduced(name, losses, reduction)


def _of_probabilities(
    x: Value, t: Value, weight: Any, ignore_index: int, reduction: str, smoothing: float
) -> Value:
    name = "cross_entropy"
    if x.ndim == 0 or t.shape != x.shape:
        raise shape_error(
            name, [x, t], "probabilities must have the shape of the scores, [N, C], [N, C, ...] or [C]"
        )
    if ignore_index >= 0:
        raise ShapeError(
            f"{name}: ignore_index={ignore_index} is for class indices; the target holds probabilities"
        )
    axis = 1 if x.ndim > 1 else 0
    classes = x.shape[axis]
    if smoothing:
        t = t * (1.0 - smoothing) + smoothing / _number(classes)
    if weight is not None:
        w = weights_of(name, "weight", weight)
        if w.shape != (classes,):
            raise shape_error(name, [x, w], f"weight must have one number per class, [{classes}]")
        t = t * reshape(w, (classes, *(1,) * (x.ndim - axis - 1)))
    return reduced(name, neg(sum(t * log_softmax(x, axis), axis)), reduction)
