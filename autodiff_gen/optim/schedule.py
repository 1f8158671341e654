"""The base class of the learning-rate schedules, and the step count from which they compute rate and momentum."""

from __future__ import annotations

import math
from typing import Any

from .. import functional as F
from .. import init
from ..errors import AttributeModelError, ModelError, unknown_name
from ..ir.build import constant, make_state
from ..ir.graph import State
from ..ir.names import with_role
from ..ir.node import Value
from ..ir.types import Type, f32, plain
from .alternatives import METHODS


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
            self._now = with_role(self._before + 1.0, "step")
        return self._before

    @property
    def now(self) -> Value:
        """The number of steps including this one."""
        assert self.before is not None
        return self._now

    def updates(self) -> dict[State, Value]:
        return {} if self._state is None else {self._state: self._now}


def checked_float(
    where: str, value: Any, low: float = 0.0, high: float = math.inf, open: bool = False
) -> float:
    """The argument as a float. Raises ModelError unless it is in [low, high]; open: unless it is greater than low."""
    value = plain(value)
    known = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not known or value < low or value > high or (open and value == low):
        limit = f"{'greater than' if open else 'at least'} {low:g}"
        limit += "" if high == math.inf else f" and at most {high:g}"
        raise ModelError(f"{where}={value!r} must be a number {limit}")
    return float(value)


def count(where: str, value: Any) -> int:
    """The argument, a number of steps. Raises ModelError unless it is from 1 to 2^24 - 1."""
    value = plain(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 1 << 24:
        raise ModelError(f"{where}={value!r} must be an integer of at least 1")
    return value


def powers(gamma: float, exponent: Value) -> Value:
    """gamma^exponent. The logarithm of gamma is computed in double: powers of a rounded gamma would drift."""
    return F.exp(exponent * math.log(gamma))


class LRScheduler:
    """Base class of the schedules."""

    def __new__(cls, *args: Any, **options: Any) -> LRScheduler:
        """Raises ModelError for PyTorch's form, in which the first argument is the optimizer."""
        if "optimizer" in options or any(hasattr(given, "defaults") for given in args[:1]):
            name = cls.__name__
            raise ModelError(
                f"{name}: leave out the optimizer, and give the schedule to the model: "
                f"ag.Model(..., optimizer=..., schedule=optim.lr_scheduler.{name}(...))"
            )
        return super().__new__(cls)

    def __getattr__(self, name: str) -> Any:
        raise unknown_name(f"lr_scheduler.{type(self).__name__}", name, METHODS, (), AttributeModelError)

    def rate(self, base: float, t: Value) -> Value:
        """The learning rate after t steps, an f32 scalar; `base` is the optimizer's rate."""
        raise NotImplementedError

    def momentum(self, t: Value) -> Value | None:
        """The momentum after t steps; None for schedules that do not vary it."""
        return None


def as_scalar(name: str, x: Any) -> Value:
    """A number or an f32 scalar as a value. Raises ModelError for anything else."""
    v = x if isinstance(x, Value) else constant(float(x))
    if v.type != Type(f32, ()):
        raise ModelError(f"{name}: the factor is {v.type}, not a scalar f32[]")
    return v
