"""The state that a module has in Python, in addition to parameters and buffers: torch.export takes it for constant.

A module is called several times as a user calls it. If outputs or gradients differ for the same inputs, parameters,
buffers and seed, then something changed in Python: a counter, a schedule, a number of `random`, a stored tensor.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import ModelError
from .hook_names import caller

CALLS, MORE = 3, 12  # calls of every module, and further calls if numbers change
NUMBERS = (50, 100, 500, 1000, 10_000, 1_000_000)  # values of counters: schedules begin or end there
SECONDS = 2.0  # for further calls
TOLERANCE = 1e-6  # relative to the largest element


@contextmanager
def state_kept(torch: Any, module: Any) -> Iterator[None]:
    """Afterwards restore the attributes, tensors, gradients and hooks of the module, and the states of random
    numbers."""
    held = _Held(torch, module)
    of_python, of_numpy, enabled = random.getstate(), np.random.get_state(), torch.is_grad_enabled()
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        random.setstate(of_python)
        np.random.set_state(of_numpy)
        torch._C._set_grad_enabled(enabled)
        held.restore()


def check_repeatable(torch: Any, module: Any, examples: Sequence[Any], name: str) -> bool:
    """Raises ModelError for a module that computes other numbers in each call. Returns whether it can be called with
    the examples."""
    try:
        different = _different(torch, module, examples)
    except _NotCallable:
        return False
    if different is not None:
        place = f", first at {different}" if different else ""
        raise ModelError(
            f"{name} computes other numbers in each call{place}: a number or tensor that Python changes from call to "
            "call is a constant of the import; make it an input of forward, or draw random numbers by torch"
        )
    return True


def _different(torch: Any, module: Any, examples: Sequence[Any]) -> str | None:
    """The line that computes other numbers in a later call than in the first, empty if the line is not known; None if
    no call differs."""
    with state_kept(torch, module):
        calls = _Calls(torch, module, examples)
        first = calls.outcome()
        if all(_same(first, calls.outcome()) for _ in range(1, CALLS)) and not _later(torch, calls, first):
            return None
    with state_kept(torch, module):
        calls = _Calls(torch, module, examples)
        before = calls.logged()
        for _ in range(1, CALLS):
            for ours, theirs in zip(before, calls.logged(), strict=False):
                if ours != theirs:
                    return theirs.place
    return ""


def _later(torch: Any, calls: _Calls, first: Sequence[Any]) -> bool:
    """Whether a later call differs because calls change numbers that the module holds: one of the next calls, or a call
    after these numbers are set to large values."""
    before, started = _numbers(torch, calls.module), time.monotonic()
    calls.outcome()
    counters = {
        at: (holder, value - before[at][1])
        for at, (holder, value) in _numbers(torch, calls.module).items()
        if at in before and value != before[at][1]
    }
    if not counters:
        return False
    for number in (*[0] * MORE, *NUMBERS):
        for offset in (1, 0) if number else (0,):
            for (_, key), (holder, step) in counters.items() if number else ():
                value = (number - offset) * step
                if isinstance(holder, list | dict):
                    holder[key] = value
                else:
                    setattr(holder, key, value)
            if time.monotonic() - started > SECONDS:
                return False
            if not _same(first, calls.outcome()):
                return True
    return False


@dataclass(frozen=True)
class CallRecord:
    """A call of a function of PyTorch: the user's line, the function's name, numbers among its arguments, and the sums
    of its results."""

    place: str
    function: str
    numbers: tuple[Any, ...]
    sums: tuple[float, ...]


class _NotCallable(Exception):
    """PyTorch cannot call the module with the examples, or cannot differentiate it."""


class _Calls:
    """Calls of a module with the same inputs, parameters, buffers and seed."""

    def __init__(self, torch: Any, module: Any, examples: Sequence[Any]) -> None:
        self.torch, self.module, self.examples = torch, module, examples
        self.tensors = [*module.parameters(), *module.buffers()]
        self.values = [t.detach().clone() for t in self.tensors]
        self.buffers = [(m._buffers, dict(m._buffers)) for m in module.modules()]

    def outcome(self) -> list[Any]:
        """Outputs, and gradients of the sum of outputs."""
        for held, buffers in self.buffers:
            held.update(buffers)
        for tensor, value in zip(self.tensors, self.values, strict=True):
            _set(tensor.detach(), value)
            tensor.grad = None
        self.torch.manual_seed(0)
        try:
            results = list(_tensors(self.torch, self.module(*[e.clone() for e in self.examples])))
            reached = [
                self.torch.view_as_real(r) if r.is_complex() else r for r in results if r.requires_grad
            ]
            if reached:
                self.torch.autograd.backward([r.sum() for r in reached])
        except Exception:  # of the user's code
            raise _NotCallable from None
        gradients = [t.grad for t in self.tensors if t.grad is not None]
        return [t.detach().clone() for t in (*results, *gradients)]

    def logged(self) -> list[CallRecord]:
        """The functions of PyTorch that a call calls."""
        torch: Any = self.torch
        entries: list[CallRecord] = []

        class Log(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
            def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                result = func(*args, **(kwargs or {}))
                given = tuple(_plain((*args, *(kwargs or {}).values())))
                sums = tuple(
                    float(t.detach().double().sum()) for t in _tensors(torch, result) if not t.is_complex()
                )
                if sums:
                    entries.append(
                        CallRecord(
                            caller(torch, _Calls.outcome.__code__), getattr(func, "__name__", ""), given, sums
                        )
                    )
                return result

        with Log():
            self.outcome()
        return entries


def _set(tensor: Any, value: Any) -> None:
    """Copy the value, unless it is equal: PyTorch cannot write a tensor whose elements share memory."""
    if not tensor.equal(value):
        tensor.copy_(value)


def _tensors(torch: Any, given: Any) -> Iterator[Any]:
    if isinstance(given, torch.Tensor):
        yield given
    elif isinstance(given, dict):
        yield from _tensors(torch, tuple(given.values()))
    elif isinstance(given, tuple | list):
        for part in given:
            yield from _tensors(torch, part)


def _plain(given: Any) -> Iterator[Any]:
    if isinstance(given, int | float):
        yield given
    elif isinstance(given, tuple | list):
        for part in given:
            yield from _plain(part)


def _same(ours: Sequence[Any], theirs: Sequence[Any]) -> bool:
    if [(t.shape, t.dtype) for t in ours] != [(t.shape, t.dtype) for t in theirs]:
        return False
    for a, b in zip(ours, theirs, strict=True):
        scale = (
            float(a.double().abs().nan_to_num(0.0, 0.0, 0.0).max())
            if a.numel() and not a.is_complex()
            else 1.0
        )
        if not a.allclose(b, rtol=0.0, atol=TOLERANCE * scale, equal_nan=True):
            return False
    return True


# The objects that a module holds


def _holders(torch: Any, module: Any) -> dict[int, Any]:
    """Objects that the module holds, and objects in these, by id: modules, lists, dictionaries, instances of other
    classes."""
    found: dict[int, Any] = {}
    waiting = [module]
    while waiting:
        holder = waiting.pop()
        package = type(holder).__module__.partition(".")[0]
        is_object = isinstance(holder, torch.nn.Module) or (
            hasattr(holder, "__dict__")
            and package not in ("torch", "builtins", "numpy", "functools", "types")
        )
        if (
            id(holder) in found
            or isinstance(holder, type)
            or not (is_object or isinstance(holder, dict | list))
        ):
            continue
        found[id(holder)] = holder
        waiting += [value for _, value in _items(holder)]
    return found


def _items(holder: Any) -> list[tuple[Any, Any]]:
    if isinstance(holder, list):
        return list(enumerate(holder))
    return list((holder if isinstance(holder, dict) else vars(holder)).items())


def _numbers(torch: Any, module: Any) -> dict[tuple[int, Any], tuple[Any, Any]]:
    """Numbers of Python that the module holds, with their holders."""
    return {
        (at, key): (holder, value)
        for at, holder in _holders(torch, module).items()
        for key, value in _items(holder)
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


class _Held:
    """The state of a module at one time."""

    def __init__(self, torch: Any, module: Any) -> None:
        self.holders = list(_holders(torch, module).values())
        self.items = [_items(holder) for holder in self.holders]
        held = [value for items in self.items for _, value in items if isinstance(value, torch.Tensor)]
        self.tensors = {
            id(t): (t, t.data, t.detach().clone(), t.requires_grad, t.grad, dict(t._backward_hooks or {}))
            for t in held
            if t.is_leaf
        }

    def restore(self) -> None:
        # A view with a gradient cannot be detached: another tensor with the same memory replaces it.
        views = {i: own for i, (t, own, *_) in self.tensors.items() if not t.is_leaf and t._is_view()}
        for holder, held in zip(self.holders, self.items, strict=True):
            items = [(key, views.get(id(value), value)) for key, value in held]
            if isinstance(holder, list):
                holder[:] = [value for _, value in items]
            elif [(k, id(v)) for k, v in _items(holder)] != [(k, id(v)) for k, v in items]:
                kept = holder if isinstance(holder, dict) else vars(holder)
                kept.clear()
                kept.update(items)
        for tensor, own, value, requires_grad, grad, hooks in self.tensors.values():
            _set(own, value)
            if id(tensor) in views:
                continue
            if tensor.dtype != own.dtype or tensor.data_ptr() != own.data_ptr():
                tensor.data = own  # other weights may show the same memory
            if not tensor.is_leaf:
                tensor.detach_()
            tensor.requires_grad_(requires_grad)
            tensor.grad = grad
            if tensor._backward_hooks:
                tensor._backward_hooks.clear()
                tensor._backward_hooks.update(hooks)
