"""Convert losses, optimizers and schedules of PyTorch, with their settings, to ours. Nothing here imports PyTorch."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ... import nn, optim
from ...errors import ModelError
from ..imported.program import ImportedProgram
from . import schedules
from .hook_names import described


@dataclass
class _Imported:
    """A parameter of PyTorch, its name, and the parameter that from_torch made of it; None if the network does not use
    it. shares: the ids of other parameters that show the same memory."""

    tensor: weakref.ref[Any]
    name: str
    own: nn.Parameter | None
    shares: set[int] = field(default_factory=set)


_imported: dict[int, _Imported] = {}  # by the id of the parameter of PyTorch
# Options by which PyTorch selects an implementation.
SPEED = {"foreach", "fused", "capturable", "differentiable"}


def is_torch(given: Any) -> bool:
    """Whether an object is PyTorch's, or of a subclass."""
    return any(cls.__module__.partition(".")[0] == "torch" for cls in type(given).__mro__)


def remember(module: Any, net: nn.Module, program: ImportedProgram) -> None:
    """Note which parameter of ours each parameter of a torch.nn.Module became, for `optimizer`."""
    held = {
        f"{path}.{name}" if path else name: own
        for path, inner in net.named_modules()
        for name, own in inner._members()[0].items()
    }
    bases = {**program.tied, **{name: view.base for name, view in program.views.items() if view.trained}}
    named = dict(module.named_parameters(remove_duplicate=False))  # a shared one has several names
    became: dict[int, _Imported] = {}
    for name, parameter in named.items():
        own = held.get(name) or held.get(bases.get(name, ""))
        new = _Imported(weakref.ref(parameter), name, own)
        before = became.setdefault(id(parameter), new)
        before.own = before.own or own
    for name, base in bases.items():
        one, other = (named.get(n) for n in (name, base))
        if one is not None and other is not None and one is not other:
            became[id(one)].shares.add(id(other))
            became[id(other)].shares.add(id(one))
    _imported.update(became)


def loss(given: Any) -> Any:
    """Convert a loss of torch.nn. Raises ModelError if it has no counterpart."""
    made = _counterpart(given, nn)
    if made is None:
        raise ModelError(
            f"loss: {_full_name(given)} has no counterpart in ag.nn; write it as a function of (scores, target), or in "
            "a module that returns the loss, for ag.from_torch"
        )
    options = {k: getattr(given, k) for k in inspect.signature(made).parameters if hasattr(given, k)}
    return made(**{k: np.asarray(v.detach()) if hasattr(v, "detach") else v for k, v in options.items()})


def _counterpart(given: Any, ours: Any) -> Any:
    """Our class with the name of the object's class, if that is PyTorch's; None for other classes."""
    cls = type(given)
    return vars(ours).get(cls.__name__) if cls.__module__.partition(".")[0] == "torch" else None


def _full_name(given: Any) -> str:
    """The name of an object's class in messages: `torch.optim.LBFGS`, or `Own` for a class of the user."""
    cls = type(given)
    package = ".".join(cls.__module__.split(".")[:2])
    return f"{package}.{cls.__name__}" if package.startswith("torch.") else cls.__name__


def training(optimizer: Any, schedule: Any) -> tuple[Any, Any]:
    """Convert an optimizer and a schedule if they are PyTorch's; others are returned as they are. Raises ModelError."""
    own = schedules.schedule(schedule, optimizer) if is_torch(schedule) else schedule
    return _optimizer(optimizer, own is not None) if is_torch(optimizer) else optimizer, own


def _optimizer(given: Any, scheduled: bool) -> optim.Optimizer:
    """Convert an optimizer of torch.optim, over parameters of modules that from_torch imported. Its state is not taken
    over. scheduled: the model has a schedule, which starts from the rate that the optimizer had before PyTorch's
    schedule changed it. Raises ModelError if it has no counterpart."""
    name = type(given).__name__
    made = _counterpart(given, optim)
    if not (isinstance(made, type) and issubclass(made, optim.Optimizer)):
        own = (n for n, c in vars(optim).items() if isinstance(c, type) and issubclass(c, optim.Optimizer))
        rules = ", ".join(sorted(set(own) - {"Optimizer"}))
        raise ModelError(f"optimizer: {_full_name(given)} has no counterpart in ag.optim; use one of {rules}")
    everywhere = (
        given._patch_step_function.__func__.__globals__ if hasattr(given, "_patch_step_function") else {}
    )
    hooks = [given._optimizer_step_pre_hooks, given._optimizer_step_post_hooks]
    hooks += [
        everywhere.get("_global_optimizer_pre_hooks", {}),
        everywhere.get("_global_optimizer_post_hooks", {}),
    ]
    hook = next((h for registered in hooks for h in registered.values()), None)
    if hook is not None:
        raise ModelError(
            f"optimizer: torch.optim.{name} has the hook {described(hook)} of its steps, which C does not call; limit "
            "gradients by ag.Model(clip_grad_norm=...), or change them by register_hook of parameters"
        )
    # Groups also have entries of schedules, and entries that are no options, such as AdamW's decoupled decay.
    chosen = inspect.signature(type(given)).parameters.keys() - SPEED
    groups = []
    for group in given.param_groups:
        found = [_of(tensor, name) for tensor in group["params"]]
        _check_shared(found, group, given)
        parameters = list(dict.fromkeys(of.own for of in found if of.own is not None))
        options = {k: v for k, v in group.items() if k in chosen and k in given.defaults}
        options["lr"] = float(group.get("initial_lr", group["lr"]) if scheduled else group["lr"])
        made(**options)  # rejects options that are not supported
        known = inspect.signature(made).parameters
        groups.append({"params": parameters, **{k: v for k, v in options.items() if k in known}})
    optimizer = made(groups, lr=groups[0]["lr"])
    optimizer.skips_unreached = True
    return optimizer


def _of(tensor: Any, name: str) -> _Imported:
    known = _imported.get(id(tensor))
    if known is None or known.tensor() is not tensor:
        raise ModelError(
            f"optimizer: a parameter {list(tensor.shape)} of torch.optim.{name} belongs to no module that from_torch "
            "imported; create the optimizer of the module's parameters()"
        )
    return known


def _check_shared(found: Sequence[_Imported], group: Mapping[str, Any], given: Any) -> None:
    """Raises ModelError if a group has parameters of PyTorch that share memory, and PyTorch would train them otherwise
    than the one parameter that they are here: PyTorch's optimizer updates the memory once for each."""
    name = type(given).__name__
    chosen = {id(of.tensor()) for of in found}
    for of in found:
        missing = next((_imported[other].name for other in of.shares if other not in chosen), None)
        if missing is not None:
            raise ModelError(
                f"optimizer: torch.optim.{name} has {of.name!r}, but in this group not {missing!r}, which shares its "
                "memory; give it both, in one group"
            )
        if of.shares and (name != "SGD" or group.get("weight_decay")):
            other = _imported[min(of.shares)].name
            raise ModelError(
                f"optimizer: torch.optim.{name} updates the memory that {of.name!r} and {other!r} share twice in each "
                "step; make them one parameter, or use ag.optim, which updates it once"
            )
