"""Subclasses of torch.autograd.Function, whose `backward` torch.export does not see: while a module is exported, a call
becomes its result, detached, and a term of value 0 whose gradient is what `backward` returns. One of PyTorch's own,
checkpoint(use_reentrant=True), becomes a call of the function: no gradient reaches it if none of its operands has one.

That is x * h - (x * h).detach() for each operand x, where h is `backward` of ones: `backward` has to multiply the
gradient element by element, as surrogate gradients, straight-through estimators and reversed gradients do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...errors import ModelError


class _Saved:
    """The context that `forward` and `backward` share."""

    def __init__(self, count: int) -> None:
        self.saved_tensors: tuple[Any, ...] = ()
        self.needs_input_grad = (True,) * count

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    def set_materialize_grads(self, value: bool) -> None:
        pass

    mark_non_differentiable = save_for_forward = mark_dirty = lambda self, *tensors: None


@contextmanager
def exported_functions(torch: Any, name: str) -> Iterator[None]:
    """Make `apply` of the user's Functions traceable; afterwards, check the rule. Raises ModelError, for the network
    `name`, for a `backward` that it does not hold for."""
    called: list[tuple[Any, tuple[Any, ...]]] = []
    Function = torch.autograd.Function
    original = Function.__dict__["apply"]

    def apply(cls: Any, *args: Any, **options: Any) -> Any:
        if cls is torch.utils.checkpoint.CheckpointFunction:  # use_reentrant=True
            function, _, *operands = args
            records = any(isinstance(t, torch.Tensor) and t.requires_grad for t in operands)
            with torch.set_grad_enabled(records):
                return function(*operands)
        if cls.__module__.partition(".")[0] == "torch":
            return original.__func__(cls, *args, **options)
        called.append((cls, tuple(_description(torch, a) for a in args)))
        y, backward = _applied(torch, cls, args)
        if not isinstance(y, torch.Tensor):
            raise ModelError(f"{name}: {cls.__name__}.forward returns {type(y).__name__}; return one tensor")
        y = y.detach()
        for x, h in zip(args, backward(torch.ones_like(y)), strict=False):
            if h is not None and isinstance(x, torch.Tensor) and x.is_floating_point():
                term = x * h.detach()
                y = y + (term - term.detach())
        return y

    Function.apply = classmethod(apply)
    try:
        yield
    finally:
        Function.apply = original
    for cls, given in called:
        _check(torch, name, cls, given)


def _applied(torch: Any, cls: Any, args: tuple[Any, ...]) -> tuple[Any, Any]:
    """The result, and a function from its gradient to those of the operands."""
    context = _Saved(len(args))
    with torch.no_grad():
        if cls.setup_context is torch.autograd.Function.setup_context:
            y = cls.forward(context, *args)
        else:
            y = cls.forward(*args)
            cls.setup_context(context, args, y)

    def backward(dy: Any) -> tuple[Any, ...]:
        with torch.no_grad():
            found = cls.backward(context, dy)
        return found if isinstance(found, tuple) else (found,)

    return y, backward


def _description(torch: Any, given: Any) -> Any:
    """The shape of floats, with what a free batch was for the export; another argument as it is."""
    if not isinstance(given, torch.Tensor) or not given.is_floating_point():
        return given
    return tuple(int(getattr(d.node, "hint", 2)) if isinstance(d, torch.SymInt) else d for d in given.shape)


def _check(torch: Any, name: str, cls: Any, given: tuple[Any, ...]) -> None:
    numbers = torch.Generator().manual_seed(0)
    args = tuple(torch.randn(g, generator=numbers) if type(g) is tuple else g for g in given)
    if any(isinstance(a, torch.Tensor) and not a.is_floating_point() for a in args):
        return  # values of integers are not known
    y, backward = _applied(torch, cls, args)
    dy = torch.randn(y.shape, generator=numbers)
    for x, d, h in zip(args, backward(dy), backward(torch.ones_like(dy)), strict=False):
        if h is None or not isinstance(x, torch.Tensor):
            continue
        if d.shape != dy.shape or not torch.allclose(d, dy * h, rtol=1e-4, atol=1e-6):
            raise ModelError(
                f"{name}: {cls.__name__}.backward does not multiply the gradient element by element, and "
                "torch.export loses it; write the gradient in forward with detach(), as in y.detach() + g - g.detach()"
            )
