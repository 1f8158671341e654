"""Variants of Adam, and Adadelta, as in torch.optim."""

from __future__ import annotations

import math
from typing import Any

from .. import functional as F
from ..functional import torch_lacks
from ..ir.graph import State
from ..ir.names import with_role
from ..ir.node import Value
from .optimizer import Optimizer, Step, arguments, checked_number
from .rules import Adam, AdamW, bias_correction, numbers

__all__ = ["Adadelta", "Adamax", "NAdam", "RAdam"]

LOG_096 = math.log(0.96)  # the decay of NAdam's momentum is a power of 0.96


class _Decaying(AdamW):
    """Base of the rules whose weight decay is added to the gradient, as Adam's, or with decoupled_weight_decay is
    subtracted from the parameter, as AdamW's."""

    def rule(self, step: Step, parameter: State, w: Value, g: Value) -> Value:
        rule = super().rule if step.options["decoupled_weight_decay"] else super(AdamW, self).rule
        return rule(step, parameter, w, g)

    def _moments(self, step: Step, parameter: State, g: Value) -> tuple[Value | float, float, Value, Value]:
        """beta1, beta2, and the new moving averages of the gradient and of its square."""
        beta1, beta2 = step.betas
        first = step.keep(parameter, "exp_avg", lambda m: m + (g - m) * (1.0 - beta1))
        second = step.keep(parameter, "exp_avg_sq", lambda v: v * beta2 + F.square(g) * (1.0 - beta2))
        return beta1, beta2, first, second


class NAdam(_Decaying):
    """Dozat 2016, as torch.optim.NAdam: Adam with Nesterov's momentum, where the momentum of step t is
    beta1 (1 - 0.96^(t momentum_decay) / 2)."""

    @torch_lacks(foreach=None, capturable=False, differentiable=False)
    def __init__(
        self,
        params: Any = None,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        Optimizer.__init__(self, **arguments(locals()))

    def checked(self, options: dict[str, Any]) -> dict[str, Any]:
        o = super().checked(options)
        return {**o, "momentum_decay": checked_number("NAdam", "momentum_decay", o["momentum_decay"])}

    def _change(self, step: Step, parameter: State, g: Value) -> Value:
        o, t = step.options, step.clock.now
        beta1, beta2, first, second = self._moments(step, parameter, g)

        def momentum_of(steps: Value) -> Value:
            return beta1 * (1.0 - 0.5 * F.exp(steps * (o["momentum_decay"] * LOG_096)))

        mu = step.share("mu", lambda: momentum_of(t))
        later = step.share("mu_next", lambda: momentum_of(t + 1.0))
        product = step.keep(parameter, "mu_product", lambda p: p * mu, 1.0, scalar=True)
        root_correction = step.share("root_correction", lambda: 1.0 / F.sqrt(bias_correction(beta2, t)))
        of_gradient = step.lr * (1.0 - mu) / (1.0 - product)
        of_average = step.lr * later / (1.0 - product * later)
        change: Value = (of_gradient * g + of_average * first) / (F.sqrt(second) * root_correction + o["eps"])
        return change


class RAdam(_Decaying):
    """Liu et al. 2020, as torch.optim.RAdam: momentum without the division by the root of the second moment in the
    first steps, while the length of the moving average is at most 5; then Adam times a rectification that approaches
    1."""

    @torch_lacks(foreach=None, capturable=False, differentiable=False)
    def __init__(
        self,
        params: Any = None,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        Optimizer.__init__(self, **arguments(locals()))

    def _change(self, step: Step, parameter: State, g: Value) -> Value:
        t = step.clock.now
        beta1, beta2, first, second = self._moments(step, parameter, g)
        step_size = step.share("step_size", lambda: step.lr / bias_correction(beta1, t))
        length = step.share("length", lambda: _length(beta2, t))
        rectified = step.share(
            "rectified", lambda: _rectification(beta2, length) * F.sqrt(bias_correction(beta2, t))
        )
        adapted = rectified / (with_role(F.sqrt(second), "root") + step.options["eps"])
        change: Value = step_size * first * F.where(length > 5.0, adapted, 1.0)
        return change


def _longest(beta2: float) -> float:
    """The length of the moving average of squared gradients after infinitely many steps, rho_inf in the paper."""
    return 2.0 / (1.0 - beta2) - 1.0


def _length(beta2: float, t: Value) -> Value:
    """The length of the moving average of squared gradients, longest - 2 t beta2^t / (1 - beta2^t), without
    cancellation: with u = -t log(beta2) the second term is a multiple of u / (exp(u) - 1) = 1 - u / 2 + u^2 / 12 -
    ..."""
    if beta2 == 0:
        return t * 0.0 + 1.0
    rate = -math.log(beta2)
    u = t * rate
    square = F.square(u)
    series = u * 0.5 - square * (
        1 / 12 - square * (1 / 720 - square * (1 / 30240 - square * (1 / 1209600 - square * (1 / 47900160))))
    )
    less = F.where(u < 1.0, series, 1.0 - u / F.expm1(F.minimum(u, 80.0)))
    return (_longest(beta2) - 2.0 / rate) + (2.0 / rate) * less


def _rectification(beta2: float, length: Value) -> Value:
    """The rectification for a length greater than 5, r_t in the paper."""
    longest = _longest(beta2)
    if longest <= 5.0:  # no length is greater than 5
        return length * 0.0 + 1.0
    known = F.maximum(length, 5.0)
    return F.sqrt((known - 4.0) * (known - 2.0) / known * (longest / ((longest - 4.0) * (longest - 2.0))))


class Adamax(Adam):
    """Kingma and Ba 2015, section 7.1, as torch.optim.Adamax: Adam with exp_inf, the decayed maximum of |g|, instead of
    the root of the second moment."""

    @torch_lacks(foreach=None, differentiable=False, capturable=False)
    def __init__(
        self,
        params: Any = None,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        Optimizer.__init__(self, **arguments(locals()))

    def _change(self, step: Step, parameter: State, g: Value) -> Value:
        beta1, beta2 = step.betas
        step_size = step.share("step_size", lambda: step.lr / bias_correction(beta1, step.clock.now))
        first = step.keep(parameter, "exp_avg", lambda m: m + (g - m) * (1.0 - beta1))
        largest = step.keep(
            parameter, "exp_inf", lambda u: F.maximum(u * beta2, F.abs(g) + step.options["eps"])
        )
        change: Value = step_size * (first / largest)
        return change


class Adadelta(Optimizer):
    """Zeiler 2012, as torch.optim.Adadelta: w -= lr * g * sqrt(mean square of the changes) / sqrt(mean square of g),
    with moving averages of the squares."""

    @torch_lacks(foreach=None, capturable=False, differentiable=False)
    def __init__(
        self,
        params: Any = None,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(**arguments(locals()))

    def checked(self, options: dict[str, Any]) -> dict[str, Any]:
        return {
            **numbers("Adadelta", options, "lr", "eps", "weight_decay"),
            "rho": checked_number("Adadelta", "rho", options["rho"], 1.0),
        }

    def rule(self, step: Step, parameter: State, w: Value, g: Value) -> Value:
        rho, eps = step.options["rho"], step.options["eps"]
        g = step.decayed(w, g)
        squares = step.keep(parameter, "square_avg", lambda s: s * rho + F.square(g) * (1.0 - rho))
        changes: list[Value] = []

        def accumulate(old: Value) -> Value:
            changes.append(F.sqrt(old + eps) / F.sqrt(squares + eps) * g)
            new: Value = old * rho + F.square(changes[0]) * (1.0 - rho)
            return new

        step.keep(parameter, "acc_delta", accumulate)
        return w - step.lr * changes[0]
