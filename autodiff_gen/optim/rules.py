"""The update rules of torch.optim. Numbers that depend only on hyperparameters, such as 1 - beta2, are computed in
double and rounded to float32 once. Constructors raise ModelError for options that are out of range."""

from __future__ import annotations

import math
from typing import Any

from .. import functional as F
from ..errors import ModelError
from ..functional import torch_lacks
from ..ir.graph import State
from ..ir.names import with_role
from ..ir.node import Value
from .optimizer import Optimizer, Step, arguments, checked_number

__all__ = [
    "SGD",
    "Adagrad",
    "Adam",
    "AdamW",
    "RMSprop",
]


class SGD(Optimizer):
    """w -= lr * g, with momentum, dampening, weight decay (g += weight_decay * w) and Nesterov's variant, as
    torch.optim.SGD."""

    uses_momentum = True

    @torch_lacks(foreach=None, differentiable=False, fused=None)
    def __init__(
        self,
        params: Any = None,
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(**arguments(locals()))

    def checked(self, options: dict[str, Any]) -> dict[str, Any]:
        o = numbers("SGD", options, "lr", "momentum", "dampening", "weight_decay")
        if o["nesterov"] and (o["momentum"] == 0 or o["dampening"] != 0):
            raise ModelError("optim.SGD: nesterov=True needs a momentum and dampening=0")
        return o

    def rule(self, step: Step, parameter: State, w: Value, g: Value) -> Value:
        o = step.options
        g = step.decayed(w, g)
        if step.momentum is not None or o["momentum"]:
            momentum = o["momentum"] if step.momentum is None else step.momentum
            entering = g
            if o["dampening"]:  # the first gradient enters the buffer undampened
                entering = F.where(step.clock.now <= 1.0, 1.0, 1.0 - o["dampening"]) * g
            buffer = step.keep(parameter, "momentum_buffer", lambda old: momentum * old + entering)
            g = g + momentum * buffer if o["nesterov"] else buffer
        return w - step.lr * g


class Adam(Optimizer):
    """Kingma and Ba 2015, as torch.optim.Adam: bias-corrected moments exp_avg and exp_avg_sq.

    The factor 1 - beta^t is computed as -expm1(t log(beta)): in float32, the direct form has a relative error of 1e-5
    at t = 1.
    """

    uses_momentum = True

    @torch_lacks(decoupled_weight_decay=False)
    @torch_lacks(foreach=None, capturable=False, differentiable=False, fused=None)
    def __init__(
        self,
        params: Any = None,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(**arguments(locals()))

    def checked(self, options: dict[str, Any]) -> dict[str, Any]:
        name = type(self).__name__
        o = numbers(name, options, "lr", "eps", "weight_decay")
        betas = o["betas"]
        if not isinstance(betas, list | tuple) or len(betas) != 2:
            raise ModelError(f"optim.{name}: betas={betas!r} must be two numbers")
        return {**o, "betas": tuple(checked_number(name, f"betas[{k}]", b, 1.0) for k, b in enumerate(betas))}

    def rule(self, step: Step, parameter: State, w: Value, g: Value) -> Value:
        return w - self._change(step, parameter, step.decayed(w, g))

    def _change(self, step: Step, parameter: State, g: Value) -> Value:
        o, t = step.options, step.clock.now
        beta1, beta2 = step.betas
        step_size = step.share("step_size", lambda: step.lr / bias_correction(beta1, t))
        root_correction = step.share("root_correction", lambda: 1.0 / F.sqrt(bias_correction(beta2, t)))
        share = 1.0 - beta1 if step.momentum is None else step.share("gradient_share", lambda: 1.0 - beta1)
        first = step.keep(parameter, "exp_avg", lambda m: m + (g - m) * share)
        square = with_role(F.square(g) * (1.0 - beta2), "square_share")
        second = step.keep(parameter, "exp_avg_sq", lambda v: v * beta2 + square)
        if o["amsgrad"]:
            largest = second
            second = step.keep(parameter, "max_exp_avg_sq", lambda v: F.maximum(v, largest))
        change: Value = step_size * (
            first / (with_role(with_role(F.sqrt(second), "root") * root_correction, "denominator") + o["eps"])
        )
        return with_role(change, "change")


class AdamW(Adam):
    """Loshchilov and Hutter 2019, as torch.optim.AdamW: Adam with decoupled weight decay, lr * weight_decay * w.

    The decay is subtracted, because 1 - lr * weight_decay would lose small decays to rounding.
    """

    @torch_lacks(foreach=None, capturable=False, differentiable=False, fused=None)
    def __init__(
        self,
        params: Any = None,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        Optimizer.__init__(self, **arguments(locals()))

    def rule(self, step: Step, parameter: State, w: Value, g: Value) -> Value:
        change = self._change(step, parameter, g)
        if step.options["weight_decay"]:
            decay = step.share("decay", lambda: step.lr * step.options["weight_decay"])
            change = with_role(decay * w + change, "change")
        return w - change


class RMSprop(Optimizer):
    """Hinton's lecture 6e, as torch.optim.RMSprop: w -= lr * g / (sqrt(mean square of g) + eps), with momentum. The
    mean is a moving average; `centered`: the variance of g instead of its mean square."""

    uses_momentum = True

    @torch_lacks(capturable=False, foreach=None, differentiable=False)
    def __init__(
        self,
        params: Any = None,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(**arguments(locals()))

    def checked(self, options: dict[str, Any]) -> dict[str, Any]:
        return numbers("RMSprop", options, "lr", "alpha", "eps", "weight_decay", "momentum")

    def rule(self, step: Step, parameter: State, w: Value, g: Value) -> Value:
        o = step.options
        alpha = o["alpha"]
        g = step.decayed(w, g)
        variance = step.keep(parameter, "square_avg", lambda v: v * alpha + F.square(g) * (1.0 - alpha))
        if o["centered"]:
            mean = step.keep(parameter, "grad_avg", lambda m: m + (g - m) * (1.0 - alpha))
            variance = F.relu(variance - F.square(mean))  # rounding may make it negative
        change: Value = g / (with_role(F.sqrt(variance), "root") + o["eps"])
        if step.momentum is not None or o["momentum"]:
            momentum = o["momentum"] if step.momentum is None else step.momentum
            direction = change
            change = step.keep(parameter, "momentum_buffer", lambda old: momentum * old + direction)
        return w - step.lr * change


class Adagrad(Optimizer):
    """Duchi, Hazan and Singer 2011, as torch.optim.Adagrad: w -= lr / (1 + t lr_decay) * g / (sqrt(sum of all g^2) +
    eps), t from 0."""

    @torch_lacks(foreach=None, differentiable=False, fused=None)
    def __init__(
        self,
        params: Any = None,
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(**arguments(locals()))

    def checked(self, options: dict[str, Any]) -> dict[str, Any]:
        return numbers(
            "Adagrad", options, "lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps"
        )

    def rule(self, step: Step, parameter: State, w: Value, g: Value) -> Value:
        o = step.options
        g = step.decayed(w, g)
        rate = step.lr / (1.0 + step.clock.before * o["lr_decay"]) if o["lr_decay"] else step.lr
        first = o["initial_accumulator_value"]
        total = step.keep(parameter, "sum", lambda s: s + F.square(g), first)
        change: Value = g / (with_role(F.sqrt(total), "root") + o["eps"])
        return w - rate * change


def numbers(rule: str, options: dict[str, Any], *names: str) -> dict[str, Any]:
    """The options, with numbers of the given names as floats. Raises ModelError unless these numbers are at least 0."""
    return {k: checked_number(rule, k, v) if k in names else v for k, v in options.items()}


def bias_correction(beta: Value | float, t: Value) -> Value:
    """1 - beta^t."""
    if isinstance(beta, Value):
        return -F.expm1(t * F.log(beta))
    return -F.expm1(t * math.log(beta)) if beta else t * 0.0 + 1.0
