"""The base class of the update rules: parameter groups, optimizer state, and the learning rate of a step."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from .. import init
from ..errors import AttributeModelError, ModelError, unknown_name
from ..ir.build import make_state
from ..ir.graph import State
from ..ir.names import with_role
from ..ir.node import STATE, Value
from ..ir.origin import OPTIMIZER, UPDATE, FunctionCall, building
from ..ir.types import Type, f32, plain, planned
from ..nn import Module, Parameter
from .alternatives import METHODS
from .schedule import LRScheduler, StepCounter

Gradients: TypeAlias = Sequence[tuple[State, Value, Value]]  # (parameter, its old value, its gradient)


def checked_number(rule: str, name: str, value: Any, below: float = math.inf) -> float:
    """The hyperparameter as a float. Raises ModelError unless it is a number of at least 0 and less than `below`."""
    value = plain(value)
    if isinstance(value, LRScheduler):
        raise ModelError(
            f"optim.{rule}: {name} must be a number; give the schedule to the model, as schedule="
        )
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < below:
        limit = "" if below == math.inf else f" and below {below:g}"
        raise ModelError(f"optim.{rule}: {name}={value!r} must be a number of at least 0{limit}")
    return float(value)


def arguments(names: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a constructor by name, from its locals()."""
    return {k: v for k, v in names.items() if k not in ("self", "__class__")}


def checked_result(whose: str, state: State, made: Any, old: Value) -> Value:
    """`made`, the result of a rule, as the new value of a state. Raises ModelError if it has another type."""
    if not isinstance(made, Value) or made.type != old.type:
        what = repr(made.type) if isinstance(made, Value) else type(made).__name__
        raise ModelError(
            f"{whose}: the rule of {state.name!r} gives {what}, expected a graph value {old.type!r}"
        )
    return made


@dataclass(frozen=True, eq=False)
class ParameterGroup:
    """Parameters, as states of the model, and their common options."""

    options: Mapping[str, Any]
    states: tuple[State, ...]


class Step:
    """The inputs of an update rule for one training step and one parameter group.

    options: of the group; lr: the learning rate of the group, an f32 scalar; momentum: the value from a cyclic schedule
    that overrides the group's momentum (or betas[0]), otherwise None; clock: the step counter.
    """

    def __init__(
        self,
        options: Mapping[str, Any],
        lr: Value,
        momentum: Value | None,
        clock: StepCounter,
        states: dict[State, Value],
    ) -> None:
        self.options, self.lr, self.momentum, self.clock, self._states = options, lr, momentum, clock, states
        self._shared: dict[str, Value] = {}

    @property
    def betas(self) -> tuple[Any, float]:
        """The group's betas; the first is a graph value if a cyclic schedule overrides it."""
        beta1, beta2 = self.options["betas"]
        return beta1 if self.momentum is None else self.momentum, beta2

    def decayed(self, w: Value, g: Value) -> Value:
        """The gradient g with weight decay: g + weight_decay * w."""
        decay = self.options["weight_decay"]
        return g + decay * w if decay else g

    def share(self, name: str, compute: Callable[[], Value]) -> Value:
        """The value called `name`, computed once for all parameters of the group."""
        if name not in self._shared:
            with building(OPTIMIZER):
                self._shared[name] = with_role(compute(), name)
        return self._shared[name]

    def keep(
        self,
        parameter: State,
        name: str,
        rule: Callable[[Value], Value],
        first: float = 0.0,
        scalar: bool = False,
    ) -> Value:
        """Add a state "<parameter>.<name>", f32 of the parameter's shape and storage (scalar: one number), with the
        initial value `first`. Returns its new value, which `rule` computes from the old value."""
        start = init.constant(() if scalar else planned(parameter.logical.shape), first)
        state = State(
            f"{parameter.name}.{name}",
            Type(f32, () if scalar else parameter.type.shape),
            start,
            trainable=False,
            role="optimizer",
            storage=None if scalar else parameter.storage and parameter.storage.of_zeros,
        )
        old = make_state(state)
        made = checked_result("Step.keep", state, rule(old), old)
        self._states[state] = with_role(made, name)
        return self._states[state]


class Optimizer:
    """Base class of the update rules; a subclass defines `rule`, and `checked` for its options.

    params: the trained parameters: a module, parameters, or names or name prefixes ("fc1" is fc1.weight and fc1.bias);
    None: all that the loss depends on. Or a list of parameter groups, dicts with "params" and the options that differ
    from the others. A parameter in no group keeps its value.

    The learning rate of a step is an argument of the generated function with the default `lr`, unless the model has a
    schedule; a group whose lr is k times the default uses k times the argument.
    """

    skips_unreached = False  # whether `params` may include some that the loss does not reach
    uses_momentum = False  # whether the rule has a momentum (or betas[0]) that a cyclic schedule can vary

    def __init__(self, params: Any = None, **defaults: Any) -> None:
        if "lr" not in defaults:
            raise ModelError(f"{self._name}: lr has no default; write super().__init__(params, lr=lr)")
        self.defaults = self.checked(defaults)
        self.lr: float = self.defaults["lr"]
        if isinstance(params, int | float):
            raise ModelError(
                f"{self._name}: params={params!r} is a number; give the learning rate as lr={params!r}"
            )
        if isinstance(params, list | tuple) and params and all(isinstance(p, Mapping) for p in params):
            self._groups = [self._group(k, dict(p)) for k, p in enumerate(params)]
        else:
            self._groups = [(params, self.defaults)]

    @property
    def takes_all(self) -> bool:
        """Whether a group has params=None: all parameters that the loss depends on."""
        return any(selectors is None for selectors, _ in self._groups)

    @property
    def _name(self) -> str:
        return f"optim.{type(self).__name__}"

    def __repr__(self) -> str:
        """The options of each parameter group, as PyTorch prints them."""
        lines = [f"{type(self).__name__} ("]
        for k, (_, options) in enumerate(self._groups):
            lines += [f"Parameter Group {k}", *(f"    {name}: {options[name]}" for name in sorted(options))]
        return "\n".join([*lines, ")"])

    def __getattr__(self, name: str) -> Any:
        raise unknown_name(f"optim.{type(self).__name__}", name, METHODS, (), AttributeModelError)

    def checked(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options of a group, with numbers as floats. Raises ModelError for an option that is out of range."""
        return {**options, "lr": checked_number(type(self).__name__, "lr", options["lr"])}

    def rule(self, step: Step, parameter: State, w: Value, g: Value) -> Value:
        """The new value of a parameter; `w` is its old value, `g` its gradient."""
        raise ModelError(f"{self._name} has no method rule(self, step, parameter, w, g)")

    def _group(self, k: int, given: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        if "params" not in given:
            raise ModelError(f'{self._name}: parameter group {k} has no "params"')
        selectors = given.pop("params")
        for name in given:
            if name not in self.defaults:
                known = ", ".join(self.defaults)
                raise ModelError(
                    f"{self._name}: parameter group {k}: unknown option {name!r}; known: {known}"
                )
        return selectors, self.checked({**self.defaults, **given})

    def groups(self, states: Sequence[State]) -> list[ParameterGroup]:
        """The groups with the model's parameters in each.

        Raises ModelError for a selector that matches no parameter, and for a parameter in two groups.
        """
        groups: list[ParameterGroup] = []
        owner: dict[State, int] = {}
        for k, (selectors, options) in enumerate(self._groups):
            if selectors is None:
                groups.append(ParameterGroup(options, tuple(states)))
                continue
            if not isinstance(selectors, str | Module | Value | Parameter | list | tuple):
                selectors = list(selectors)  # a generator, evaluated after its module has names
                self._groups[k] = (selectors, options)
            many = selectors if isinstance(selectors, list | tuple) else [selectors]
            chosen = {s: None for selector in many for s in self._selected(selector, states)}
            for state in chosen:
                if owner.setdefault(state, k) != k:
                    raise ModelError(
                        f"{self._name}: {state.name!r} is in more than one parameter group; leave it in one"
                    )
            groups.append(ParameterGroup(options, tuple(s for s in states if s in chosen)))
        return groups

    def _selected(self, selector: Any, states: Sequence[State]) -> list[State]:
        if isinstance(selector, tuple) and len(selector) == 2 and isinstance(selector[0], str):
            selector = selector[1]  # an item of named_parameters
        if isinstance(selector, str):
            chosen = [s for s in states if s.name == selector or s.name.startswith(f"{selector}.")]
            what = repr(selector)
        elif isinstance(selector, Module):
            below = {v.node.attrs["state"] for v in selector.parameters()}
            chosen, what = [s for s in states if s in below], f"the module {type(selector).__name__}"
        else:
            value = selector.value if isinstance(selector, Parameter) else selector
            if not isinstance(value, Value) or value.node.op is not STATE:
                raise ModelError(
                    f"{self._name}: {selector!r} in params is no parameter; give modules, parameters or names"
                )
            state = value.node.attrs["state"]
            if state not in states and state.trainable and not self.skips_unreached:
                raise ModelError(
                    f"{self._name}: the loss does not reach the parameter {value.name!r} in params; use it, set "
                    "requires_grad=False, or leave it out"
                )
            return [s for s in states if s is state]
        if not chosen:
            known = ", ".join(s.name for s in states)
            raise ModelError(
                f"{self._name}: {what} in params is no parameter of this model, which has {known}"
            )
        return chosen

    def updates(
        self,
        groups: Sequence[ParameterGroup],
        params: Gradients,
        lr: Value | None = None,
        schedule: LRScheduler | None = None,
    ) -> dict[State, Value]:
        """State -> new value, for the parameters, then for the optimizer state.

        lr: the learning rate, an f32 scalar; None with a schedule. Raises ModelError for a schedule that needs a
        momentum which the rule lacks, and for a rule that gives a value of another type.
        """
        clock = StepCounter()
        new: dict[State, Value] = {}
        states: dict[State, Value] = {}
        for group in groups:
            rate = self._rate(group.options["lr"], lr, schedule, clock)
            momentum = schedule.momentum(clock.before) if schedule is not None else None
            if momentum is not None:
                if not self.uses_momentum:
                    raise ModelError(
                        f"{self._name} has no momentum that a schedule could cycle; give cycle_momentum=False"
                    )
                momentum = with_role(momentum, "momentum")
            step = Step(group.options, rate, momentum, clock, states)
            members = set(group.states)
            for state, w, g in params:
                if state in members:
                    with building(state.name, UPDATE, call=FunctionCall(type(self).__name__.lower())):
                        made = self.rule(step, state, w, -g if group.options.get("maximize") else g)
                    new[state] = checked_result(self._name, state, made, w)
        return new | clock.updates() | states

    def _rate(self, base: float, lr: Value | None, schedule: LRScheduler | None, clock: StepCounter) -> Value:
        """The learning rate of a group whose option lr is `base`."""
        if schedule is not None:
            return with_role(schedule.rate(base, clock.before), "rate")
        assert lr is not None
        if base == self.lr:
            return lr
        if self.lr == 0:
            raise ModelError(
                f"{self._name}: a group has lr={base:g}, which is no multiple of the default, lr=0"
            )
        return lr * (base / self.lr)
