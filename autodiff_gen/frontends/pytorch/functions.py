"""Subclasses of torch.autograd.Function, whose `backward` torch.export does not see. While a module is exported, a call
becomes the computation of `forward`, and an operator whose gradients are the computation of `backward`. PyTorch's
checkpoint(use_reentrant=True) becomes a call of the function, recorded only if an operand requires a gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ...errors import ModelError
from .hooks import custom_gradient


class _Saved:
    """The context that `forward` and `backward` share."""

    def __init__(self, args: tuple[Any, ...]) -> None:
        self.saved_tensors: tuple[Any, ...] = ()
        self.needs_input_grad = tuple(bool(getattr(a, "requires_grad", False)) for a in args)

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    def set_materialize_grads(self, value: bool) -> None:
        pass

    mark_non_differentiable = save_for_forward = mark_dirty = lambda self, *tensors: None


@contextmanager
def exported_functions(torch: Any, name: str, mapped: Callable[[Any], Any]) -> Iterator[None]:
    """Make `apply` of the user's Functions traceable. mapped: replaces tensors that have hooks. Raises ModelError, for
    the network `name`, for results that are no tensors."""
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
        args = mapped(args)
        context = _Saved(args)
        if cls.setup_context is Function.setup_context:
            result = cls.forward(context, *args)
        else:
            result = cls.forward(*args)
            cls.setup_context(context, args, result)
        single = not isinstance(result, tuple)
        results = (result,) if single else result
        for y in results:
            if not isinstance(y, torch.Tensor):
                raise ModelError(f"{name}: {cls.__name__}.forward returns {type(y).__name__}; return tensors")
        if not torch.is_grad_enabled():
            return result
        floats = [k for k, y in enumerate(results) if y.is_floating_point()]
        ys = [results[k].detach() for k in floats]
        gs = [torch.ops.autodiff_gen.gradient_of(y) for y in ys]
        arriving = dict(zip(floats, gs, strict=True))
        found = cls.backward(context, *map(arriving.get, range(len(results))))
        found = found if isinstance(found, tuple) else (found,)
        pairs = [
            (x, h)
            for x, h in zip(args, found, strict=False)
            if h is not None and isinstance(x, torch.Tensor) and x.is_floating_point()
        ]
        made = dict(zip(floats, custom_gradient(torch, ys, gs, pairs), strict=True))
        values = tuple(made.get(k, y) for k, y in enumerate(results))
        return values[0] if single else values

    Function.apply = classmethod(apply)
    try:
        yield
    finally:
        Function.apply = original
