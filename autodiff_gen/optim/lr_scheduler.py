"""Learning-rate schedules that the device computes in float32 from the step count: those of torch.optim.lr_scheduler,
in closed form.

The model has the schedule, `ag.Model(..., schedule=...)`; its base rate is the optimizer's. It advances with every
training step, as PyTorch's does when `scheduler.step()` follows each `optimizer.step()`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .. import functional as F
from .. import init
from ..errors import ModelError
from ..functional import torch_lacks
from ..ir.build import constant, make_state
from ..ir.graph import State
from ..ir.node import Value
from ..ir.types import Type, f32, plain


class StepCounter:
    """The step count, a state that is created on first use: f32, exact up to 2^24, where it saturates."""

    def __init__(self) -> None:
        self._state: State | None = None

    @property
    def before(self) -> Value:
        """The number of steps before this one."""
        if self._state is None:
            self._state = State("optimizer.step", Type(f32, ()), init.zeros(()), False, "optimizer")
            self._before = make_state(self._state)
            self._now = self._before + 1.0
        return self._before

    @property
    def now(self) -> Value:
        """The number of steps including this one."""
        assert self.before is not None
        return self._now

    def updates(self) -> dict[State, Value]:
        return {} if self._state is None else {self._state: self._now}


def _number(where: str, value: Any, low: float = 0.0, high: float = math.inf, open: bool = False) -> float:
    value = plain(value)
    known = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not known or value < low or value > high or (open and value == low):
        limit = f"{'greater than' if open else 'at least'} {low:g}"
        limit += "" if high == math.inf else f" and at most {high:g}"
        raise ModelError(f"{where}={value!r} must be a number {limit}")
    return float(value)


def _count(where: str, value: Any) -> int:
    value = plain(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 1 << 24:
        raise ModelError(f"{where}={value!r} must be a whole number of at least 1")
    return value


def _powers(gamma: float, exponent: Value) -> Value:
    """gamma^exponent. The logarithm is computed in double, because powers of a rounded gamma would drift."""
    return F.exp(exponent * math.log(gamma))


class LRScheduler:
    """Base class of the schedules."""

    def rate(self, base: float, t: Value) -> Value:
        """The learning rate after t steps, an f32 scalar; `base` is the optimizer's."""
        raise NotImplementedError

    def momentum(self, t: Value) -> Value | None:
        """The momentum after t steps, for schedules that vary it, otherwise None."""
        return None


class LambdaLR(LRScheduler):
    """base * lr_lambda(t); t, the step count, is an f32 scalar graph value."""

    @torch_lacks(last_epoch=-1)
    def __init__(self, lr_lambda: Callable[[Value], Any]) -> None:
        if not callable(lr_lambda):
            raise ModelError(f"LambdaLR: lr_lambda={lr_lambda!r} must be a function of a graph value")
        self.lr_lambda = lr_lambda

    def rate(self, base: float, t: Value) -> Value:
        return base * as_scalar("LambdaLR", self.lr_lambda(t))


def as_scalar(name: str, x: Any) -> Value:
    v = x if isinstance(x, Value) else constant(float(x))
    if v.type != Type(f32, ()):
        raise ModelError(f"{name}: the factor is {v.type}, not a scalar f32[]")
    return v


class StepLR(LRScheduler):
    """base * gamma^(t // step_size)."""

    @torch_lacks(last_epoch=-1)
    def __init__(self, step_size: int, gamma: float = 0.1) -> None:
        self.step_size = _count("StepLR: step_size", step_size)
        self.gamma = _number("StepLR: gamma", gamma, open=True)

    def rate(self, base: float, t: Value) -> Value:
        return base * _powers(self.gamma, F.floor(t / float(self.step_size)))


class MultiStepLR(LRScheduler):
    """base * gamma^k, k the number of milestones that t has reached."""

    @torch_lacks(last_epoch=-1)
    def __init__(self, milestones: Sequence[int], gamma: float = 0.1) -> None:
        self.milestones = sorted(_count("MultiStepLR: milestone", m) for m in milestones)
        self.gamma = _number("MultiStepLR: gamma", gamma, open=True)

    def rate(self, base: float, t: Value) -> Value:
        rate: Any = base
        for k, milestone in enumerate(self.milestones):
            rate = F.where(t >= float(milestone), base * self.gamma ** (k + 1), rate)
        return as_scalar("MultiStepLR", rate)


class ConstantLR(LRScheduler):
    """base * factor for total_iters steps, then base."""

    @torch_lacks(last_epoch=-1)
    def __init__(self, factor: float = 1.0 / 3, total_iters: int = 5) -> None:
        self.factor = _number("ConstantLR: factor", factor, high=1.0)
        self.total_iters = _count("ConstantLR: total_iters", total_iters)

    def rate(self, base: float, t: Value) -> Value:
        return F.where(t < float(self.total_iters), base * self.factor, base)


class LinearLR(LRScheduler):
    """From base * start_factor to base * end_factor in total_iters steps: a warm-up."""

    @torch_lacks(last_epoch=-1)
    def __init__(self, start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5) -> None:
        self.start_factor = _number("LinearLR: start_factor", start_factor, high=1.0, open=True)
        self.end_factor = _number("LinearLR: end_factor", end_factor, high=1.0)
        self.total_iters = _count("LinearLR: total_iters", total_iters)

    def rate(self, base: float, t: Value) -> Value:
        part = F.minimum(t / float(self.total_iters), 1.0)
        return base * self.start_factor + base * (self.end_factor - self.start_factor) * part


class ExponentialLR(LRScheduler):
    """base * gamma^t."""

    @torch_lacks(last_epoch=-1)
    def __init__(self, gamma: float) -> None:
        self.gamma = _number("ExponentialLR: gamma", gamma, open=True)

    def rate(self, base: float, t: Value) -> Value:
        return base * _powers(self.gamma, t)


class CosineAnnealingLR(LRScheduler):
    """From base down to eta_min in T_max steps along a cosine, and up again in the next T_max; Loshchilov and Hutter
    2017."""

    @torch_lacks(last_epoch=-1)
    def __init__(self, T_max: int, eta_min: float = 0.0) -> None:
        self.T_max = _count("CosineAnnealingLR: T_max", T_max)
        self.eta_min = _number("CosineAnnealingLR: eta_min", eta_min)

    def rate(self, base: float, t: Value) -> Value:
        period = 2.0 * self.T_max
        within = t - F.floor(t / period) * period  # whole numbers: exact
        # (1 + cos(2 a)) / 2 = cos(a)^2, which has no cancellation where it is small
        above = (base - self.eta_min) * F.square(F.cos(within * (math.pi / period)))
        return self.eta_min + above if self.eta_min else above


class OneCycleLR(LRScheduler):
    """Smith and Topin 2018: up from max_lr / div_factor to max_lr in the first `pct_start` of total_steps, then down to
    max_lr / div_factor / final_div_factor, where it stays. The optimizer's own rate is not used.

    Give total_steps, or epochs and steps_per_epoch. anneal_strategy: "cos" or "linear". cycle_momentum: the momentum
    (betas[0] of Adam) decreases from max_momentum to base_momentum while the rate increases, and then increases again.
    three_phase: the rate first returns to max_lr / div_factor, symmetrically to its increase.
    """

    @torch_lacks(last_epoch=-1)
    def __init__(
        self,
        max_lr: float,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float = 0.85,
        max_momentum: float = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
    ) -> None:
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ModelError("OneCycleLR: give total_steps, or epochs and steps_per_epoch")
            total_steps = _count("OneCycleLR: epochs", epochs) * _count(
                "OneCycleLR: steps_per_epoch", steps_per_epoch
            )
        total = _count("OneCycleLR: total_steps", total_steps)
        share = _number("OneCycleLR: pct_start", pct_start, high=1.0)
        if anneal_strategy not in ("cos", "linear"):
            raise ModelError(f'OneCycleLR: anneal_strategy={anneal_strategy!r}; known: "cos", "linear"')
        self.anneal_strategy, self.cycle_momentum = anneal_strategy, cycle_momentum
        top = _number("OneCycleLR: max_lr", max_lr)
        start = top / _number("OneCycleLR: div_factor", div_factor, open=True)
        end = start / _number("OneCycleLR: final_div_factor", final_div_factor, open=True)
        low, high = (
            _number(f"OneCycleLR: {name}", v, high=1.0)
            for name, v in (("base_momentum", base_momentum), ("max_momentum", max_momentum))
        )
        # Phases: the last step, rate and momentum of each.
        self.first = (start, high)
        self.phases: list[tuple[float, float, float]] = [(share * total - 1, top, low)]
        if three_phase:
            self.phases.append((2 * share * total - 2, start, high))
        self.phases.append((total - 1.0, end, high))

    def rate(self, base: float, t: Value) -> Value:
        return self._level(t, 0)

    def momentum(self, t: Value) -> Value | None:
        return self._level(t, 1) if self.cycle_momentum else None

    def _level(self, t: Value, which: int) -> Value:
        """The rate (which = 0) or momentum (1) after t steps."""
        ends = [p[0] for p in self.phases]
        levels = [self.first[which], *(p[1 + which] for p in self.phases)]
        starts = [0.0, *ends[:-1]]
        result: Any = None
        for k in reversed(range(len(ends))):
            length = ends[k] - starts[k]
            if length <= 0:  # the phase has no step
                phase: Any = levels[k + 1]
            else:
                phase = self._anneal(
                    levels[k], levels[k + 1], F.minimum((t - starts[k]) * (1.0 / length), 1.0)
                )
            result = phase if result is None else F.where(t <= ends[k], phase, result)
        return as_scalar("OneCycleLR", result)

    def _anneal(self, start: float, end: float, part: Value) -> Value:
        if self.anneal_strategy == "linear":
            return start + (end - start) * part
        angle = part * (math.pi / 2)
        if end > start:  # add to the smaller number, to avoid cancellation
            return start + (end - start) * F.square(F.sin(angle))
        return end + (start - end) * F.square(F.cos(angle))


class SequentialLR(LRScheduler):
    """One schedule after the other; the step count of each starts at its milestone."""

    @torch_lacks(last_epoch=-1)
    def __init__(self, schedulers: Sequence[LRScheduler], milestones: Sequence[int]) -> None:
        for s in schedulers:
            if not isinstance(s, LRScheduler):
                raise ModelError(f"SequentialLR: {s!r} is not a schedule of optim.lr_scheduler")
        self.schedulers = list(schedulers)
        self.milestones = [_count("SequentialLR: milestone", m) for m in milestones]
        if len(self.milestones) != len(self.schedulers) - 1 or sorted(self.milestones) != self.milestones:
            raise ModelError(
                f"SequentialLR: {len(self.schedulers)} schedulers need {len(self.schedulers) - 1} milestones in "
                f"ascending order, got {list(milestones)}"
            )
        if any(isinstance(s, OneCycleLR) and s.cycle_momentum for s in self.schedulers):
            raise ModelError("SequentialLR: OneCycleLR within it must have cycle_momentum=False")

    def rate(self, base: float, t: Value) -> Value:
        result = self.schedulers[0].rate(base, t)
        for start, s in zip(self.milestones, self.schedulers[1:], strict=True):
            # Before its milestone a schedule gets 0, and its result is not used.
            result = F.where(t < float(start), result, s.rate(base, F.maximum(t - float(start), 0.0)))
        return result
