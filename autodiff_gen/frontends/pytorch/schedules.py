"""Convert schedules of torch.optim.lr_scheduler, with their settings, to ours. Nothing here imports PyTorch."""

from __future__ import annotations

import inspect
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...errors import ModelError
from ...functional.inputs import Input
from ...ir.interpreter import evaluate
from ...optim import lr_scheduler
from ...optim.alternatives import SCHEDULES

_LAMBDA = (
    "its function takes no graph values; make a table: rates = np.array([rate(t) for t in range(STEPS)], np.float32) "
    "and schedule=ag.optim.lr_scheduler.LambdaLR(lambda t: F.index_select(rates, 0, F.to(F.clamp(t, max=STEPS - 1), "
    '"s32"))[0])'
)
STEPS = (*range(100), 101, 333, 1000, 9999)  # steps at which a function of LambdaLR is compared


def schedule(given: Any, optimizer: Any) -> lr_scheduler.LRScheduler:
    """Convert a schedule of torch.optim.lr_scheduler. Raises ModelError for a schedule that has no counterpart, has
    made steps, or has another optimizer than the model."""
    made = _converted(given)
    name = _name(given)
    if given.optimizer is not optimizer:
        raise ModelError(
            f"schedule: {name} is of another optimizer than the model's; create it over that one, or use ag.optim."
            f"lr_scheduler.{type(made).__name__}"
        )
    if given.last_epoch > 0:
        raise ModelError(f"schedule: {name} has been stepped to {given.last_epoch}; give a new one")
    bases = [group["initial_lr"] for group in optimizer.param_groups]
    if any(leaf.base_lrs != bases for leaf in _leaves(given) if type(leaf).__name__ not in SETTINGS):
        raise ModelError(f"schedule: a part of {name} starts from a rate that another part has replaced")
    return made


def _name(given: Any) -> str:
    return f"torch.optim.lr_scheduler.{type(given).__name__}"


def _leaves(given: Any) -> Iterator[Any]:
    for inner in getattr(given, "_schedulers", ()):
        yield from _leaves(inner)
    if not hasattr(given, "_schedulers"):
        yield given


def _converted(given: Any) -> lr_scheduler.LRScheduler:
    name = type(given).__name__
    made = vars(lr_scheduler).get(name)
    if name == "LambdaLR":
        return _lambda(given)
    instead = SCHEDULES.get(name)
    if instead is not None:
        raise ModelError(f"schedule: {_name(given)} cannot be converted; {instead}")
    if not (isinstance(made, type) and issubclass(made, lr_scheduler.LRScheduler)):
        raise ModelError(f"schedule: {_name(given)} has no counterpart in ag.optim.lr_scheduler")
    options = SETTINGS[name](given) if name in SETTINGS else _attributes(given, made)
    return made(**options)


def _lambda(given: Any) -> lr_scheduler.LRScheduler:
    """A LambdaLR of ours. Raises ModelError unless its function computes the same rates for graph values."""
    function, *others = given.lr_lambdas
    if any(other is not function for other in others):
        raise ModelError(f"schedule: {_name(given)} has a function for each group; give one for all")
    t = Input("t", ())
    try:
        made = lr_scheduler.LambdaLR(function)
        rate = made.rate(1.0, t)
        found = [float(evaluate([rate], {t: k}, float_dtype="float64")[0]) for k in STEPS]
        good = all(
            math.isclose(a, function(k), rel_tol=1e-5, abs_tol=1e-9)
            for a, k in zip(found, STEPS, strict=True)
        )
    except Exception:  # the function has operations that take only numbers
        good = False
    if not good:
        raise ModelError(f"schedule: {_name(given)} cannot be converted; {_LAMBDA}")
    return made


def _attributes(given: Any, made: type) -> dict[str, Any]:
    """The arguments of our class, from the attributes of PyTorch's object with the same names, or with a leading _."""
    found = {}
    for name in inspect.signature(made).parameters:
        value = getattr(given, name) if hasattr(given, name) else getattr(given, f"_{name}")
        if isinstance(value, Counter):  # of milestones
            value = sorted(value.elements())
        elif name == "schedulers":
            value = list(map(_converted, value))
        found[name] = value
    return found


def _one_cycle(given: Any) -> dict[str, Any]:
    """The arguments of OneCycleLR: PyTorch's object has phases, and rates in the parameter groups."""
    first, *rest = given._schedule_phases
    rates = {key: _same(given, key, [g[key] for g in given.optimizer.param_groups]) for key in _RATES}
    return {
        "max_lr": rates["max_lr"],
        "total_steps": given.total_steps,
        "pct_start": (first["end_step"] + 1) / given.total_steps,
        "anneal_strategy": given._anneal_func_type,
        "div_factor": rates["max_lr"] / rates["initial_lr"],
        "final_div_factor": rates["initial_lr"] / rates["min_lr"],
        "three_phase": len(rest) == 2,
        **_momenta(given),
    }


def _cyclic(given: Any) -> dict[str, Any]:
    """The arguments of CyclicLR: PyTorch's object has the length of a cycle and the part of its rise."""
    if given._scale_fn_custom is not None:
        raise ModelError(
            f"schedule: {_name(given)} has a scale_fn; use a mode, or ag.optim.lr_scheduler.LambdaLR"
        )
    up = given.total_size * given.step_ratio
    return {
        "base_lr": _same(given, "base_lr", given.base_lrs),
        "max_lr": _same(given, "max_lr", given.max_lrs),
        "step_size_up": _whole(up),
        "step_size_down": _whole(given.total_size - up),
        "mode": given.mode,
        "gamma": given.gamma,
        **_momenta(given),
    }


_RATES = ("max_lr", "initial_lr", "min_lr")
# Classes whose objects do not have their arguments as attributes -> the arguments. They do not start from the
# optimizer's rate.
SETTINGS: Mapping[str, Callable[[Any], dict[str, Any]]] = {"CyclicLR": _cyclic, "OneCycleLR": _one_cycle}


def _momenta(given: Any) -> dict[str, Any]:
    if not given.cycle_momentum:
        return {"cycle_momentum": False}
    groups = given.optimizer.param_groups
    return {key: _same(given, key, [g[key] for g in groups]) for key in ("base_momentum", "max_momentum")}


def _same(given: Any, key: str, values: list[Any]) -> float:
    """The value that all parameter groups have. Raises ModelError if they differ."""
    if len(set(map(float, values))) > 1:
        raise ModelError(f"schedule: {_name(given)} has {key} for each group; give one for all")
    return float(values[0])


def _whole(steps: float) -> Any:
    """A number of steps, rounded if it is an integer up to rounding errors; our class rejects other numbers."""
    return round(steps) if math.isclose(steps, round(steps)) else steps
