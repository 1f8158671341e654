"""Schedules whose rate rises as well as falls: one cycle, repeated cycles, and cosines with restarts."""

from __future__ import annotations

import math
from typing import Any

from .. import functional as F
from ..errors import ModelError
from ..functional import torch_lacks
from ..ir.node import Value
from .schedule import LRScheduler, as_scalar, checked_float, count, powers

LAST_STEP = 1 << 24  # the step count saturates here


class OneCycleLR(LRScheduler):
    """Smith and Topin 2018: the rate rises from max_lr / div_factor to max_lr in the first `pct_start` of total_steps,
    then falls to max_lr / div_factor / final_div_factor, where it stays; PyTorch raises an error after total_steps. The
    optimizer's own rate is not used.

    Give total_steps, or epochs and steps_per_epoch. anneal_strategy: "cos" or "linear". cycle_momentum: the momentum
    (betas[0] of Adam) falls from max_momentum to base_momentum while the rate rises, and then rises again.
    three_phase: the rate first falls to max_lr / div_factor, in as many steps as it rose.
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
            total_steps = count("OneCycleLR: epochs", epochs) * count(
                "OneCycleLR: steps_per_epoch", steps_per_epoch
            )
        total = count("OneCycleLR: total_steps", total_steps)
        share = checked_float("OneCycleLR: pct_start", pct_start, high=1.0)
        if anneal_strategy not in ("cos", "linear"):
            raise ModelError(f'OneCycleLR: anneal_strategy={anneal_strategy!r}; known: "cos", "linear"')
        self.anneal_strategy, self.cycle_momentum = anneal_strategy, cycle_momentum
        top = checked_float("OneCycleLR: max_lr", max_lr)
        start = top / checked_float("OneCycleLR: div_factor", div_factor, open=True)
        end = start / checked_float("OneCycleLR: final_div_factor", final_div_factor, open=True)
        low, high = (
            checked_float(f"OneCycleLR: {name}", v, high=1.0)
            for name, v in (("base_momentum", base_momentum), ("max_momentum", max_momentum))
        )
        # self.phases: the last step, and the rate and the momentum at it.
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
        """The rate (which=0) or the momentum (which=1) after t steps."""
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


class CyclicLR(LRScheduler):
    """Smith 2017: the rate rises from base_lr to max_lr in step_size_up steps, falls in step_size_down steps (as many
    by default), and repeats this. The optimizer's own rate is not used.

    mode: "triangular": all cycles are equal; "triangular2": max_lr - base_lr is halved after each cycle; "exp_range":
    it is multiplied by gamma at each step. cycle_momentum: the momentum (betas[0] of Adam) falls from max_momentum to
    base_momentum while the rate rises, and rises while the rate falls.
    """

    @torch_lacks(scale_fn=None, scale_mode="cycle", last_epoch=-1)
    def __init__(
        self,
        base_lr: float,
        max_lr: float,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
    ) -> None:
        if mode not in ("triangular", "triangular2", "exp_range"):
            raise ModelError(f'CyclicLR: mode={mode!r}; known: "triangular", "triangular2", "exp_range"')
        self.rates = checked_float("CyclicLR: base_lr", base_lr), checked_float("CyclicLR: max_lr", max_lr)
        self.up = count("CyclicLR: step_size_up", step_size_up)
        self.down = self.up if step_size_down is None else count("CyclicLR: step_size_down", step_size_down)
        self.mode, self.cycle_momentum = mode, cycle_momentum
        self.gamma = checked_float("CyclicLR: gamma", gamma, open=True)
        self.momenta = (
            checked_float("CyclicLR: max_momentum", max_momentum, high=1.0),
            checked_float("CyclicLR: base_momentum", base_momentum, high=1.0),
        )

    def rate(self, base: float, t: Value) -> Value:
        return self._between(*self.rates, t)

    def momentum(self, t: Value) -> Value | None:
        return self._between(*self.momenta, t) if self.cycle_momentum else None

    def _between(self, start: float, end: float, t: Value) -> Value:
        """The level after t steps: `start` at the beginning of each cycle, `end` at the top of the first cycle."""
        total = float(self.up + self.down)
        cycle = F.floor(t / total)
        within = t - cycle * total  # integers: exact
        height = F.where(within <= float(self.up), within / self.up, (total - within) / self.down)
        if self.mode == "triangular2":
            height = height * powers(0.5, cycle)
        elif self.mode == "exp_range":
            height = height * powers(self.gamma, t)
        return start + (end - start) * height


class CosineAnnealingWarmRestarts(LRScheduler):
    """Loshchilov and Hutter 2017: the rate falls from base to eta_min along half a cosine in T_0 steps, then again in
    T_mult times as many steps, and so on."""

    @torch_lacks(last_epoch=-1)
    def __init__(self, T_0: int, T_mult: int = 1, eta_min: float = 0.0) -> None:
        self.T_0 = count("CosineAnnealingWarmRestarts: T_0", T_0)
        self.T_mult = count("CosineAnnealingWarmRestarts: T_mult", T_mult)
        self.eta_min = checked_float("CosineAnnealingWarmRestarts: eta_min", eta_min)

    def rate(self, base: float, t: Value) -> Value:
        start: Any = 0.0
        length: Any = float(self.T_0)
        if self.T_mult == 1:
            start = F.floor(t / length) * length  # integers: exact
        else:
            restart, steps = self.T_0, self.T_0 * self.T_mult
            while restart < LAST_STEP:
                begun = t >= float(restart)
                start, length = F.where(begun, float(restart), start), F.where(begun, float(steps), length)
                restart, steps = restart + steps, steps * self.T_mult
        # (1 + cos(2 a)) / 2 = cos(a)^2, which has no cancellation where it is small
        above = (base - self.eta_min) * F.square(F.cos((t - start) / length * (math.pi / 2)))
        return self.eta_min + above if self.eta_min else above
