"""Rules of the table: losses inside a network."""

from __future__ import annotations

from typing import Any

from .rules import Arguments, Converter, Rule, same

REDUCTIONS = ("none", "mean", "sum")


def _loss(function: str, arguments: str) -> Rule:
    """A loss; PyTorch's operators have numbers for reductions, by default the number of the mean."""
    rule = same(function, arguments)
    return lambda c, a: rule(c, {**a, "reduction": REDUCTIONS[a.get("reduction", 1)]})


def _first(rule: Rule) -> Rule:
    """A rule for the first result of an operator; only the operator's gradient reads the second."""

    def with_one(c: Converter, a: Arguments) -> Any:
        return [rule(c, a)]

    return with_one


_NLL = _loss("nll_loss", "self target weight ignore_index reduction")
_PAIR = "self target reduction"

LOSSES: dict[str, Rule] = {
    "aten.cross_entropy_loss": _loss(
        "cross_entropy", "self target weight ignore_index reduction label_smoothing"
    ),
    "aten.nll_loss": _NLL,
    "aten.nll_loss_nd": _NLL,
    "aten.nll_loss_forward": _first(_NLL),
    "aten.nll_loss2d_forward": _first(_NLL),
    "aten.mse_loss": _loss("mse_loss", _PAIR),
    "aten.l1_loss": _loss("l1_loss", _PAIR),
    "aten.smooth_l1_loss": _loss("smooth_l1_loss", f"{_PAIR} beta"),
    "aten.huber_loss": _loss("huber_loss", f"{_PAIR} delta"),
    "aten.binary_cross_entropy": _loss("binary_cross_entropy", "self target weight reduction"),
    "aten.binary_cross_entropy_with_logits": _loss(
        "binary_cross_entropy_with_logits", "self target weight reduction pos_weight"
    ),
    "aten.kl_div": _loss("kl_div", f"{_PAIR} log_target"),
    "aten.soft_margin_loss": _loss("soft_margin_loss", _PAIR),
    "aten.hinge_embedding_loss": _loss("hinge_embedding_loss", "self target margin reduction"),
    "aten.cosine_embedding_loss": _loss("cosine_embedding_loss", "input1 input2 target margin reduction"),
    "aten.margin_ranking_loss": _loss("margin_ranking_loss", "input1 input2 target margin reduction"),
    "aten.triplet_margin_loss": _loss(
        "triplet_margin_loss", "anchor positive negative margin p eps swap reduction"
    ),
    "aten.poisson_nll_loss": _loss("poisson_nll_loss", "input target log_input full eps reduction"),
    "aten.multi_margin_loss": _loss("multi_margin_loss", "self target p margin weight reduction"),
}
