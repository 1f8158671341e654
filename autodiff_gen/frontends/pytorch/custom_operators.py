"""Functions of PyTorch that torch.export cannot trace: while a module is exported, a call becomes an operator of ours.

    torch.autograd.grad(y, xs, dy)              ->  autodiff_gen.grad(y, dy, xs)
    torch.nn.functional.ctc_loss(log_probs, ..) ->  autodiff_gen.ctc_loss(log_probs, ..)
    BatchNorm(momentum=None)                    ->  autodiff_gen.batch_norm(x, ..)

Physics-informed networks, gradient penalties and MAML compute gradients inside a module.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from ...errors import ModelError
from ..imported.program import CONSTANT, WeightRef
from .hook_names import caller
from .rules import Arguments, Converter, Rule, Unsupported, same
from .tracing import tracing_mode


@cache
def _library(torch: Any) -> Any:
    """Define the operators. Outside of an export they call PyTorch's functions; in an export they only have shapes."""
    library = torch.library.Library("autodiff_gen", "DEF")

    def define(schema: str, shapes: Any, computed: Any) -> None:
        name = library.define(schema)

        def in_pytorch(first: Any, *rest: Any) -> Any:
            tensor = first[0] if isinstance(first, list | tuple) else first
            if type(tensor) in (torch.Tensor, torch.nn.Parameter):
                return computed(first, *rest)
            with torch._C._AutoDispatchBelowAutograd():  # a decomposition records it below autograd
                found = getattr(torch.ops.autodiff_gen, schema.partition("(")[0])(first, *rest)
            if rest and schema.startswith("custom_gradient") and any(x.requires_grad for x in rest[1]):
                return [y.requires_grad_().clone() for y in found]
            return found

        library.impl(name, shapes, "Meta")
        library.impl(name, in_pytorch, "Autograd")

    define(
        "grad(Tensor y, Tensor? dy, Tensor[] xs) -> Tensor[]",
        lambda y, dy, xs: [torch.empty_like(x) for x in xs],
        lambda y, dy, xs: list(torch.autograd.grad(y, xs, dy, create_graph=True, materialize_grads=True)),
    )
    define("gradient_of(Tensor y) -> Tensor", torch.empty_like, torch.zeros_like)
    define(
        "custom_gradient(Tensor[] ys, Tensor[] gs, Tensor[] xs, Tensor[] dxs) -> Tensor[]",
        lambda ys, gs, xs, dxs: list(map(torch.empty_like, ys)),
        lambda ys, gs, xs, dxs: [y.clone() for y in ys],
    )
    define(
        "ctc_loss(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank, "
        "str reduction, bool zero_infinity) -> Tensor",
        lambda log_probs, targets, given, wanted, blank, reduction, zero_infinity: log_probs.new_empty(
            given.shape if reduction == "none" else ()
        ),
        torch.nn.functional.ctc_loss,
    )
    define(
        "batch_norm(Tensor input, Tensor running_mean, Tensor running_var, Tensor tracked, Tensor? weight, "
        "Tensor? bias, float eps) -> Tensor",
        lambda x, *_: torch.empty_like(x),
        lambda x, mean, var, tracked, weight, bias, eps: torch.nn.functional.batch_norm(
            x, mean, var, weight, bias, True, 1.0 / float(tracked.add_(1)), eps
        ),
    )
    return library  # its operators exist as long as it does


@contextmanager
def exported_operators(torch: Any, name: str) -> Iterator[None]:
    """Replace the functions. Raises ModelError, for the network `name`, for arguments that the operators do not
    support."""
    _library(torch)

    def tensors(given: Any) -> tuple[Any, ...]:
        return (given,) if isinstance(given, torch.Tensor) else tuple(given or ())

    def grad(
        outputs: Any,
        inputs: Any,
        grad_outputs: Any = None,
        retain_graph: Any = None,
        create_graph: bool = False,
        is_grads_batched: bool = False,
        **_: Any,
    ) -> tuple[Any, ...]:
        if is_grads_batched:
            raise ModelError(
                f"{name}: torch.autograd.grad has is_grads_batched=True; call it for each gradient"
            )
        ys, dys = tensors(outputs), tensors(grad_outputs)
        dys = dys or (None,) * len(ys)
        xs = list(tensors(inputs))
        of_each = [
            torch.ops.autodiff_gen.grad(y.sum() if dy is None else y, dy, xs)
            for y, dy in zip(ys, dys, strict=True)
        ]
        found = (sum(terms[1:], terms[0]) for terms in zip(*of_each, strict=True))
        return tuple(found) if create_graph else tuple(g.detach() for g in found)

    def ctc_loss(
        log_probs: Any,
        targets: Any,
        input_lengths: Any,
        target_lengths: Any,
        blank: int = 0,
        reduction: str = "mean",
        zero_infinity: bool = False,
    ) -> Any:
        if targets.dim() != log_probs.dim() - 1:
            raise ModelError(
                f"{name}: ctc_loss has targets of all sequences in one axis; pad them to one length, as [N, S]"
            )
        lengths = (
            t if isinstance(t, torch.Tensor) else torch.tensor(t) for t in (input_lengths, target_lengths)
        )
        return torch.ops.autodiff_gen.ctc_loss(log_probs, targets, *lengths, blank, reduction, zero_infinity)

    def set_data(x: Any, values: Any) -> None:
        """x.data = values: change the values of x without a gradient. Raises ModelError for another shape."""
        if x.shape != values.shape:
            raise ModelError(f"{name}: .data gets another shape; compute with a new tensor")
        x.detach().copy_(values)

    ours = {
        torch.autograd.grad: grad,
        torch.nn.functional.ctc_loss: ctc_loss,
        torch.Tensor.data.__get__: lambda x: x.detach(),
        torch.Tensor.data.__set__: set_data,
    }

    class Replaced(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return ours.get(func, func)(*args, **(kwargs or {}))

    BatchNorm = torch.nn.modules.batchnorm._BatchNorm
    forward = BatchNorm.forward

    def batch_norm(self: Any, x: Any) -> Any:
        """BatchNorm's forward with our operator for momentum=None: there PyTorch reads the number of batches, which
        torch.export cannot trace."""
        if self.momentum is not None or not self.training or not self.track_running_stats:
            return forward(self, x)
        state = self.running_mean, self.running_var, self.num_batches_tracked
        return torch.ops.autodiff_gen.batch_norm(x, *state, self.weight, self.bias, self.eps)

    def rejected(func: Any) -> Any:
        """A replacement that raises ModelError while an export runs, for a method that no mode of PyTorch replaces."""

        def called(*args: Any, **kwargs: Any) -> Any:
            if tracing_mode(torch) is None:
                return func(*args, **kwargs)  # of torch.export itself
            raise ModelError(
                f"{name}: forward calls {func.__name__} ({caller(torch)}), which gives a tensor other memory; compute "
                "with a new tensor, or copy the values by copy_"
            )

        return called

    BatchNorm.forward = batch_norm
    moving = [getattr(torch.Tensor, n) for n in ("set_", "resize_", "resize_as_")]
    for func in moving:
        setattr(torch.Tensor, func.__name__, rejected(func))
    try:
        with Replaced():
            yield
    finally:
        BatchNorm.forward = forward
        for func in moving:
            setattr(torch.Tensor, func.__name__, func)


def _grad(c: Converter, a: Arguments) -> Any:
    xs, dy = a["xs"], a.get("dy")
    if any(isinstance(x, WeightRef) and c.weights[x.name].role == CONSTANT for x in xs):
        raise Unsupported(
            "has a gradient with respect to a constant; compute it from an input, as by torch.zeros_like(x)"
        )
    form, given = ("ag.grad({}, {})", ()) if dy is None else ("ag.grad({}, {}, {})", (dy,))
    if len(xs) == 1:
        return c.emit(form, a["y"], xs[0], *given)
    return c.emit_all(form, c.names(), a["y"], xs, *given)


def _batch_norm(c: Converter, a: Arguments) -> Any:
    return c.emit(
        "batch_norm",
        *(a.get(name) for name in ("input", "running_mean", "running_var", "weight", "bias")),
        training=True,
        momentum=None,
        eps=a["eps"],
    )


def _custom_gradient(c: Converter, a: Arguments) -> Any:
    ys, gs, xs, dxs = (a[name] for name in ("ys", "gs", "xs", "dxs"))
    if not xs:
        return [c.emit("detach", y) for y in ys]
    if len(ys) == 1:
        return [c.emit("custom_gradient", ys[0], gs[0], xs, dxs)]
    return c.emit_all("custom_gradient", c.names(), ys, gs, xs, dxs)


OPERATORS: dict[str, Rule] = {
    "autodiff_gen.gradient_of": same("gradient_of", "y"),
    "autodiff_gen.custom_gradient": _custom_gradient,
    "autodiff_gen.batch_norm": _batch_norm,
    "autodiff_gen.grad": _grad,
    "autodiff_gen.ctc_loss": same(
        "ctc_loss", "log_probs targets input_lengths target_lengths blank reduction zero_infinity"
    ),
}
