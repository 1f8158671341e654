"""Gradient hooks, which torch.export does not record. While a module is exported, a value that has a hook becomes the
result of our operator custom_gradient: its gradient is the hook's result for a placeholder of the gradient.

    h.register_hook(lambda g: g * mask)  ->  g = autodiff_gen.gradient_of(h)
                                             h = autodiff_gen.custom_gradient([h], [g], [h], [g * mask])

Hooks of parameters and of modules are recorded the same way. A parameter whose requires_grad is off in a part of
`forward` is detached there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ...errors import ModelError
from .hook_names import caller, described
from .module_hooks import ModuleHooks
from .tracing import tracing_mode


def check_hooks(torch: Any, module: Any, name: str) -> None:
    """Raises ModelError for registered hooks that cannot be recorded."""
    for path, parameter in module.named_parameters():
        for hook in (getattr(parameter, "_post_accumulate_grad_hooks", None) or {}).values():
            raise ModelError(
                f"{name}: the hook {described(hook)} of the parameter {path!r} runs after its gradient is stored; "
                "register it by register_hook, as a function of the gradient"
            )
    everywhere = torch.nn.modules.module
    for hooks in (everywhere._global_backward_hooks, everywhere._global_backward_pre_hooks):
        for hook in hooks.values():
            raise ModelError(
                f"{name}: the backward hook {described(hook)} is one of all modules; register it on modules of the "
                "network by register_full_backward_hook"
            )
    for path, inner in module.named_modules():
        if inner._backward_hooks and inner._is_full_backward_hook is False:
            hook = next(iter(inner._backward_hooks.values()))
            raise ModelError(
                f"{name}: the hook {described(hook)} of the module {path!r} was registered by register_backward_hook; "
                "use register_full_backward_hook"
            )


@contextmanager
def exported_hooks(torch: Any, module: Any, name: str) -> Iterator[Any]:
    """Record hooks while the module is exported; gives the recorder. Raises ModelError, for the network `name`, for
    hooks that cannot be recorded."""
    check_hooks(torch, module, name)
    recorder = _recorder(torch, module, name)
    hooks, modes = torch.utils.hooks, torch.autograd.grad_mode.inference_mode
    original = hooks.BackwardHook
    enter, leave = modes.__enter__, modes.__exit__
    enabled = torch.is_grad_enabled()

    def without_gradients(mode: Any) -> None:
        """In place of torch.inference_mode(): behaves as torch.no_grad(), which torch.export records."""
        mode.before = torch.is_grad_enabled()
        torch._C._set_grad_enabled(not mode.mode)

    torch.nn.modules.module.BackwardHook = functools.partial(ModuleHooks, recorder)
    modes.__enter__ = without_gradients
    modes.__exit__ = lambda mode, *error: torch._C._set_grad_enabled(mode.before)
    try:
        with recorder:
            yield recorder
    finally:
        torch.nn.modules.module.BackwardHook = original
        modes.__enter__, modes.__exit__ = enter, leave
        torch._C._set_grad_enabled(enabled)
    recorder.finish()


def custom_gradient(
    torch: Any, ys: Sequence[Any], gs: Sequence[Any], pairs: Sequence[tuple[Any, Any]]
) -> list[Any]:
    """ys with other gradients. gs: placeholders of the gradients of ys; pairs: tensors, each with the gradient that it
    gets, computed from gs."""
    xs, dxs = ([pair[k] for pair in pairs] for k in range(2))
    return list(torch.ops.autodiff_gen.custom_gradient(list(ys), list(gs), xs, dxs))


def _recorder(torch: Any, module: Any, name: str) -> Any:
    """The mode in which hooks are recorded."""
    trained = {path: p.requires_grad for path, p in module.named_parameters(remove_duplicate=False)}
    registered = {
        path: list((p._backward_hooks or {}).values())
        for path, p in module.named_parameters(remove_duplicate=False)
    }

    class Recorder(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.torch, self.module, self.name = torch, module, name
            self.new: dict[int, Any] = {}  # id of a tensor -> its replacement
            self.paths: dict[int, str] = {}  # id of a parameter -> its path
            self.hooks: dict[int, list[Any]] = {}  # by id of a tensor
            self.read: set[int] = set()  # ids of tensors that values with gradients were computed from
            self.kept: list[Any] = []  # tensors that must live, since their ids are noted
            self.removed: list[str] = []  # hooks that were removed

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            called = getattr(func, "__name__", "")
            if tracing_mode(torch) is None:
                return func(*args, **(kwargs or {}))  # of torch.export itself
            if func is torch.Tensor.register_hook:
                return self.register(*args, **(kwargs or {}))
            if func is torch.Tensor.register_post_accumulate_grad_hook:
                raise ModelError(
                    f"{name}: forward calls register_post_accumulate_grad_hook ({caller(torch)}); register a function "
                    "of the gradient by register_hook"
                )
            if func in (torch.Tensor.backward, torch.autograd.backward):
                raise ModelError(
                    f"{name}: forward calls backward ({caller(torch)}); return the loss, or use torch.autograd.grad"
                )
            if func == torch.Tensor.grad_fn.__get__:
                return _GradFn(func(*args), f"{name}: forward uses grad_fn ({caller(torch)})")
            if called in ("requires_grad_", "__set__", "retain_grad"):
                return func(*args, **(kwargs or {}))
            if not torch.is_grad_enabled() and (
                called.rstrip("_") + "_" == called or called == "__setitem__"
            ):
                self.changed(args[0], called == "__setitem__")
            result = func(*self.mapped(args), **self.mapped(kwargs or {}))
            if any(t.requires_grad for t in tensors(result)):
                given = [*tensors(args), *tensors(tuple((kwargs or {}).values()))]
                self.read.update(map(id, given))
                self.kept += given
            return result

        def mapped(self, given: Any) -> Any:
            """An argument with the replacements of tensors that have hooks. Parameters whose requires_grad is off at
            present are detached."""
            if isinstance(given, torch.Tensor):
                return self.tensor(given) if torch.is_grad_enabled() else self.new.get(id(given), given)
            if type(given) in (tuple, list):
                return type(given)(map(self.mapped, given))
            if type(given) is dict:
                return {key: self.mapped(value) for key, value in given.items()}
            return given

        def tensor(self, given: Any) -> Any:
            path = self.path(given)
            if path and trained.get(path) and not given.requires_grad:
                return given.detach()
            if path and given.requires_grad and id(given) not in self.new and registered.get(path):
                self.hook(given, registered[path], f"the parameter {path!r}")
            return self.new.get(id(given), given)

        def changed(self, given: Any, is_part: bool) -> None:
            """Check a change in place in torch.no_grad(), which gradients pass unchanged. Raises ModelError if only a
            part of a tensor changes."""
            if given.requires_grad and (is_part or given._base is not None):
                raise ModelError(
                    f"{name}: forward changes a part of a tensor in place in torch.no_grad() ({caller(torch)}); "
                    "compute all of it by torch.where"
                )

        def path(self, given: Any) -> str:
            """The path of a parameter; empty for other tensors."""
            if not isinstance(given, torch.nn.Parameter):
                return ""
            if id(given) not in self.paths:
                found = (n for n, p in module.named_parameters(remove_duplicate=False) if p is given)
                self.paths[id(given)] = next(found, "")
                self.kept.append(given)
            return self.paths[id(given)]

        def register(self, given: Any, hook: Any) -> Any:
            path, place = self.path(given), caller(torch)
            of = f"the parameter {path!r}" if path else f"a value ({place})"
            if id(given) in self.read:
                raise ModelError(
                    f"{name}: the hook {described(hook)} of {of} is registered after other values were computed from "
                    "it; register it before"
                )
            self.tensor(given)  # adds the hooks that the parameter had before the export
            self.hook(given, [hook], of)
            return _Handle(lambda: self.removed.append(f"{described(hook)} of {of}"))

        def hook(self, given: Any, hooks: Sequence[Any], of: str) -> None:
            """Add these hooks to `given`, after its present ones."""
            owner = module.get_submodule(self.path(given).rpartition(".")[0])
            if self.path(given) and isinstance(owner, torch.nn.RNNBase):
                raise ModelError(
                    f"{name}: the hook {described(hooks[0])} of {of} is one of a recurrent layer, which takes its "
                    "weights as they are; compute the layer from cells, as nn.LSTMCell, or leave the hook out"
                )
            self.hooks[id(given)] = [*self.hooks.get(id(given), ()), *hooks]
            calls = [(hook, hook) for hook in self.hooks[id(given)]]
            (self.new[id(given)],) = self.hooked([given], calls, of)
            self.kept += (given, self.new[id(given)])

        def hooked(self, values: Sequence[Any], calls: Sequence[tuple[Any, Any]], of: str) -> list[Any]:
            """Values with hooks. calls: pairs of a function and the hook that messages name. The function takes all
            gradients, and returns all or None; None for one gradient leaves it as it is."""
            of_values = [torch.ops.autodiff_gen.gradient_of(v) for v in values]
            gradients, changes = [g.clone() for g in of_values], False
            for call, hook in calls:
                versions = [g._version for g in gradients]
                try:
                    found = call(*gradients)
                except ModelError:
                    raise
                except Exception as error:  # of the user's code, for symbolic values
                    raise ModelError(
                        f"{name}: the hook {described(hook)} of {of} cannot be traced; write it as a function of the "
                        f"gradient without branches and numbers of its elements ({_line(error)})"
                    ) from None
                found = found if isinstance(found, tuple | list) else [found] * len(gradients)
                changes = changes or any(
                    f is not None and f is not g for f, g in zip(found, gradients, strict=True)
                )
                changes = changes or versions != [g._version for g in gradients]
                gradients = [g if f is None else f for f, g in zip(found, gradients, strict=True)]
                for g, value in zip(gradients, values, strict=True):
                    if not isinstance(g, torch.Tensor) or g.shape != value.shape:
                        shape = list(g.shape) if isinstance(g, torch.Tensor) else type(g).__name__
                        raise ModelError(
                            f"{name}: the hook {described(hook)} of {of} returns {shape} for a gradient of shape "
                            f"{list(value.shape)}"
                        )
            if not changes:
                return list(values)
            return custom_gradient(torch, values, of_values, list(zip(values, gradients, strict=True)))

        def finish(self) -> None:
            """Raises ModelError if the call removed hooks, or left another requires_grad: the next call would compute
            another network."""
            for removed in self.removed:
                raise ModelError(
                    f"{name}: forward removes the hook {removed} before the backward pass; leave it out"
                )
            for parameter in self.kept:
                path = self.paths.get(id(parameter))
                if path and parameter.requires_grad != trained.get(path, parameter.requires_grad):
                    raise ModelError(
                        f"{name}: forward leaves requires_grad={parameter.requires_grad} at the parameter {path!r}; "
                        "set it to its value of before, or before the import"
                    )

    def tensors(given: Any) -> list[Any]:
        if isinstance(given, torch.Tensor):
            return [given]
        return [t for part in given for t in tensors(part)] if isinstance(given, tuple | list) else []

    return Recorder()


def _line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return "control flow depends on data" if "data-dependent" in text else text[:120] or type(error).__name__


class _Handle:
    """The result of register_hook."""

    def __init__(self, remove: Callable[[], None]) -> None:
        self.remove = remove


class _GradFn:
    """A grad_fn without hooks."""

    def __init__(self, own: Any, where: str) -> None:
        self._own, self._where = own, where

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("register_"):
            raise ModelError(f"{self._where}.{attribute}; register the hook on the tensor, by register_hook")
        return getattr(self._own, attribute)
