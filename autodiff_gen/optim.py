"""Update rules as graph ops, so that fusion, in-place writing and memory planning serve them as they serve
the model.

`updates` maps each parameter, and each moment that the rule keeps, to its next value. The rules are those of
torch.optim, hyperparameters computed in Python floats and rounded to float32 once. The learning rate is an
input of the step, `lr` its default.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from . import functional as F
from . import init
from .dtypes import Type, f32, planned
from .errors import ModelError
from .functional import torch_lacks
from .ir import State, Value, make_state

Gradients = Sequence[tuple[State, Value, Value]]  # (parameter, its old value, its gradient)


def _in_range(rule: str, name: str, value: float, below: float = math.inf) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < below:
        limit = "" if below == math.inf else f" and below {below:g}"
        raise ModelError(f"optim.{rule}: {name}={value!r} must be a number of at least 0{limit}")
    return float(value)


def _moment(name: str, like: Type) -> State:
    """State of the optimizer that starts at zero."""
    return State(name, like, init.zeros(planned(like.shape)), trainable=False)


def _counter() -> tuple[State, Value]:
    """The number of steps taken so far, as a float (exact up to 2^24 steps), and after this one."""
    state = State("optimizer.step", Type(f32, ()), init.zeros(()), trainable=False)
    return state, make_state(state) + 1.0


class Optimizer:
    """Base of the update rules."""

    lr: float

    def updates(self, params: Gradients, lr: Value) -> dict[State, Value]:
        """New values of the parameters and of the rule's own state. lr: f32 scalar."""
        raise NotImplementedError


class SGD(Optimizer):
    """w -= lr * g, with momentum, dampening, weight decay (g += weight_decay * w) and Nesterov's variant, as
    torch.optim.SGD."""

    @torch_lacks(maximize=False, foreach=None, differentiable=False, fused=None)
    def __init__(
        self,
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        self.lr = _in_range("SGD", "lr", lr)
        self.momentum = _in_range("SGD", "momentum", momentum)
        self.dampening = _in_range("SGD", "dampening", dampening)
        self.weight_decay = _in_range("SGD", "weight_decay", weight_decay)
        self.nesterov = nesterov
        if nesterov and (momentum == 0 or dampening != 0):
            raise ModelError("optim.SGD: nesterov=True needs a momentum and dampening=0")

    def updates(self, params: Gradients, lr: Value) -> dict[State, Value]:
        new: dict[State, Value] = {}
        moments: dict[State, Value] = {}
        kept: Value | float = 1.0 - self.dampening
        if self.momentum and self.dampening:  # the first gradient enters the buffer undampened
            counter, steps = _counter()
            moments[counter] = steps
            kept = F.where(steps <= 1.0, 1.0, kept)
        for state, w, g in params:
            if self.weight_decay:
                g = g + self.weight_decay * w
            if self.momentum:
                buffer = _moment(f"{state.name}.momentum_buffer", state.type)
                moments[buffer] = self.momentum * make_state(buffer) + (kept * g if self.dampening else g)
                g = g + self.momentum * moments[buffer] if self.nesterov else moments[buffer]
            new[state] = w - lr * g
        return new | moments


class Adam(Optimizer):
    """Kingma and Ba 2015, as torch.optim.Adam: moments exp_avg and exp_avg_sq, corrected for their start at
    zero.

    1 - beta^t is computed as -expm1(t log(beta)): the naive form loses 1e-5 of its value in float32 at t = 1.
    """

    @torch_lacks(amsgrad=False, maximize=False, decoupled_weight_decay=False)
    @torch_lacks(foreach=None, capturable=False, differentiable=False, fused=None)
    def __init__(
        self,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        self.lr = _in_range("Adam", "lr", lr)
        if len(betas) != 2:
            raise ModelError(f"optim.Adam: betas={betas!r} must be two numbers")
        self.betas = (
            _in_range("Adam", "betas[0]", betas[0], 1.0),
            _in_range("Adam", "betas[1]", betas[1], 1.0),
        )
        self.eps = _in_range("Adam", "eps", eps)
        self.weight_decay = _in_range("Adam", "weight_decay", weight_decay)

    def updates(self, params: Gradients, lr: Value) -> dict[State, Value]:
        counter, t = _counter()
        rates = [-F.expm1(t * math.log(beta)) if beta else t * 0.0 + 1.0 for beta in self.betas]
        step_size = lr / rates[0]
        rescale = 1.0 / F.sqrt(rates[1])
        new: dict[State, Value] = {}
        moments: dict[State, Value] = {counter: t}
        for state, w, g in params:
            if self.weight_decay:
                g = g + self.weight_decay * w
            first = _moment(f"{state.name}.exp_avg", state.type)
            second = _moment(f"{state.name}.exp_avg_sq", state.type)
            m = make_state(first)
            moments[first] = m + (g - m) * (1.0 - self.betas[0])
            moments[second] = make_state(second) * self.betas[1] + F.square(g) * (1.0 - self.betas[1])
            new[state] = w - step_size * (moments[first] / (F.sqrt(moments[second]) * rescale + self.eps))
        return new | moments
