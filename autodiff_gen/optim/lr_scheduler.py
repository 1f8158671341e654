"""The schedules of torch.optim.lr_scheduler in closed form; the device computes them in float32 from the step count t.

Give a schedule to the model: `ag.Model(..., schedule=...)`. `base` is the optimizer's rate. A schedule advances with
every training step, as PyTorch's does when `scheduler.step()` follows each `optimizer.step()`. Constructors raise
ModelError for arguments that are out of range.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .. import functional as F
from ..errors import ModelError, unknown_name
from ..functional import torch_lacks
from ..ir.node import Value
from .alternatives import SCHEDULES
from .cyclic_schedules import CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts
from .cyclic_schedules import CyclicLR as CyclicLR
from .cyclic_schedules import OneCycleLR as OneCycleLR
from .schedule import LRScheduler as LRScheduler
from .schedule import as_scalar, checked_float, count, powers


class LambdaLR(LRScheduler):
    """base * lr_lambda(t), for a function of t, an f32 scalar graph value, that returns such a scalar or a number."""

    @torch_lacks(last_epoch=-1)
    def __init__(self, lr_lambda: Callable[[Value], Any]) -> None:
        if not callable(lr_lambda):
            raise ModelError(f"LambdaLR: lr_lambda={lr_lambda!r} must be a function of a graph value")
        self.lr_lambda = lr_lambda

    def rate(self, base: float, t: Value) -> Value:
        return base * as_scalar("LambdaLR", self.lr_lambda(t))


class StepLR(LRScheduler):
    """base * gamma^(t // step_size)."""

    @torch_lacks(last_epoch=-1)
    def __init__(self, step_size: int, gamma: float = 0.1) -> None:
        self.step_size = count("StepLR: step_size", step_size)
        self.gamma = checked_float("StepLR: gamma", gamma, open=True)

    def rate(self, base: float, t: Value) -> Value:
        return base * powers(self.gamma, F.floor(t / float(self.step_size)))


class MultiStepLR(LRScheduler):
    """base * gamma^k, k the number of milestones that t has reached."""

    @torch_lacks(last_epoch=-1)
    def __init__(self, milestones: Sequence[int], gamma: float = 0.1) -> None:
        self.milestones = sorted(count("MultiStepLR: milestone", m) for m in milestones)
        self.gamma = checked_float("MultiStepLR: gamma", gamma, open=True)

    def rate(self, base: float, t: Value) -> Value:
        rate: Any = base
        for k, milestone in enumerate(self.milestones):
            rate = F.where(t >= float(milestone), base * self.gamma ** (k + 1), rate)
        return as_scalar("MultiStepLR", rate)


class ConstantLR(LRScheduler):
    """base * factor for total_iters steps, then base."""

    @torch_lacks(last_epoch=-1)
    def __init__(self, factor: float = 1.0 / 3, total_iters: int = 5) -> None:
        self.factor = checked_float("ConstantLR: factor", factor, high=1.0)
        self.total_iters = count("ConstantLR: total_iters", total_iters)

    def rate(self, base: float, t: Value) -> Value:
        return F.where(t < float(self.total_iters), base * self.factor, base)


class LinearLR(LRScheduler):
    """Linear from base * start_factor to base * end_factor in total_iters steps, where it stays."""

    @torch_lacks(last_epoch=-1)
    def __init__(self, start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5) -> None:
        self.start_factor = checked_float("LinearLR: start_factor", start_factor, high=1.0, open=True)
        self.end_factor = checked_float("LinearLR: end_factor", end_factor, high=1.0)
        self.total_iters = count("LinearLR: total_iters", total_iters)

    def rate(self, base: float, t: Value) -> Value:
        part = F.minimum(t / float(self.total_iters), 1.0)
        return base * self.start_factor + base * (self.end_factor - self.start_factor) * part


class ExponentialLR(LRScheduler):
    """base * gamma^t."""

    @torch_lacks(last_epoch=-1)
    def __init__(self, gamma: float) -> None:
        self.gamma = checked_float("ExponentialLR: gamma", gamma, open=True)

    def rate(self, base: float, t: Value) -> Value:
        return base * powers(self.gamma, t)


class CosineAnnealingLR(LRScheduler):
    """Loshchilov and Hutter 2017: a cosine that falls from base to eta_min in T_max steps, and rises in the next T_max
    steps, and so on."""

    @torch_lacks(last_epoch=-1)
    def __init__(self, T_max: int, eta_min: float = 0.0) -> None:
        self.T_max = count("CosineAnnealingLR: T_max", T_max)
        self.eta_min = checked_float("CosineAnnealingLR: eta_min", eta_min)

    def rate(self, base: float, t: Value) -> Value:
        period = 2.0 * self.T_max
        within = t - F.floor(t / period) * period  # integers: exact
        # (1 + cos(2 a)) / 2 = cos(a)^2, which has no cancellation where it is small
        above = (base - self.eta_min) * F.square(F.cos(within * (math.pi / period)))
        return self.eta_min + above if self.eta_min else above


class PolynomialLR(LRScheduler):
    """base * (1 - t / total_iters)^power for total_iters steps, then 0."""

    @torch_lacks(last_epoch=-1)
    def __init__(self, total_iters: int = 5, power: float = 1.0) -> None:
        self.total_iters = count("PolynomialLR: total_iters", total_iters)
        self.power = checked_float("PolynomialLR: power", power)

    def rate(self, base: float, t: Value) -> Value:
        return base * F.pow(F.maximum(1.0 - t / float(self.total_iters), 0.0), self.power)


class SequentialLR(LRScheduler):
    """One schedule after the other; schedule k + 1 begins at milestones[k], with t = 0."""

    @torch_lacks(last_epoch=-1)
    def __init__(self, schedulers: Sequence[LRScheduler], milestones: Sequence[int]) -> None:
        for s in schedulers:
            if not isinstance(s, LRScheduler):
                raise ModelError(f"SequentialLR: {s!r} is not a schedule of optim.lr_scheduler")
        self.schedulers = list(schedulers)
        self.milestones = [count("SequentialLR: milestone", m) for m in milestones]
        if len(self.milestones) != len(self.schedulers) - 1 or sorted(self.milestones) != self.milestones:
            raise ModelError(
                f"SequentialLR: {len(self.schedulers)} schedulers need {len(self.schedulers) - 1} milestones in "
                f"ascending order, got {list(milestones)}"
            )
        for s in self.schedulers:
            if getattr(s, "cycle_momentum", False):
                raise ModelError(f"SequentialLR: {type(s).__name__} within it must have cycle_momentum=False")

    def rate(self, base: float, t: Value) -> Value:
        result = self.schedulers[0].rate(base, t)
        for start, s in zip(self.milestones, self.schedulers[1:], strict=True):
            # Before its milestone a schedule is computed for t = 0, and the result is not used.
            result = F.where(t < float(start), result, s.rate(base, F.maximum(t - float(start), 0.0)))
        return result


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        known = [k for k in globals() if k.endswith(("LR", "Restarts"))]
        raise unknown_name("lr_scheduler", name, SCHEDULES, known)
