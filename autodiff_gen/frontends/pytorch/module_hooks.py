"""Backward hooks of modules, while a module is exported."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from ...errors import ModelError
from .hook_names import described


class _Read(Exception):
    """A hook of a module reads gradients that are not known yet."""


class _Unknown:
    """A gradient that is not known yet."""

    def __getattr__(self, attribute: str) -> Any:
        raise _Read

    @classmethod
    def __torch_function__(cls, *_: Any) -> Any:
        raise _Read

    __add__ = __radd__ = __mul__ = __rmul__ = __sub__ = __rsub__ = __truediv__ = __neg__ = __getattr__
    __getitem__ = __len__ = __iter__ = __format__ = __pow__ = __matmul__ = __lt__ = __gt__ = __getattr__


class ModuleHooks:
    """In place of torch.utils.hooks.BackwardHook: adds the backward hooks of a module to the operands and results of
    its call."""

    def __init__(self, recorder: Any, module: Any, hooks: Sequence[Any], pre_hooks: Sequence[Any]) -> None:
        self.recorder, self.torch, self.module = recorder, recorder.torch, module
        self.hooks, self.pre_hooks = hooks, pre_hooks
        self.readers: list[Any] = []  # hooks that read the gradients of the results

    @property
    def _of(self) -> str:
        modules = self.recorder.module.named_modules()
        paths = (n for n, m in modules if vars(m) is vars(self.module))  # PyTorch 2.5 has proxies of modules
        return f"the module {next(paths, type(self.module).__name__)!r}"

    def setup_input_hook(self, args: Any) -> Any:
        return self._hooked(args, [(functools.partial(self._on_inputs, hook), hook) for hook in self.hooks])

    def setup_output_hook(self, result: Any) -> Any:
        if not isinstance(result, self.torch.Tensor | tuple):
            return result
        results = (result,) if isinstance(result, self.torch.Tensor) else result
        calls = [(functools.partial(self._on_outputs, hook), hook) for hook in self.pre_hooks]
        readers = [(functools.partial(self._observe, hook), hook) for hook in self.readers]
        hooked = self._hooked(results, [*calls, *readers])
        return hooked[0] if isinstance(result, self.torch.Tensor) else hooked

    def _hooked(self, values: Any, calls: Sequence[tuple[Any, Any]]) -> Any:
        """The values, with hooks that take the gradients of all tensors among them together."""
        values = list(self.recorder.mapped(list(values)))
        self.at = [
            k for k, v in enumerate(values) if isinstance(v, self.torch.Tensor) and v.is_floating_point()
        ]
        self.count = len(values)
        if calls and self.torch.is_grad_enabled() and any(values[k].requires_grad for k in self.at):
            made = self.recorder.hooked([values[k] for k in self.at], calls, self._of)
            for k, value in zip(self.at, made, strict=True):
                values[k] = value
        return tuple(values)

    def _packed(self, gradients: Sequence[Any]) -> tuple[Any, ...]:
        """The gradients as hooks get them: None for values that are no float tensors."""
        at = dict(zip(self.at, gradients, strict=True))
        return tuple(at.get(k) for k in range(self.count))

    def _chosen(self, found: Any) -> Any:
        if found is None or isinstance(found, self.torch.Tensor):
            return found
        return [found[k] for k in self.at]

    def _on_outputs(self, hook: Any, *gradients: Any) -> Any:
        return self._chosen(hook(self.module, self._packed(gradients)))

    def _on_inputs(self, hook: Any, *gradients: Any) -> Any:
        try:
            return self._chosen(hook(self.module, self._packed(gradients), (_Unknown(),)))
        except _Read:
            self.readers.append(hook)
            return None

    def _observe(self, hook: Any, *gradients: Any) -> None:
        """Call a hook that reads the gradients of results. Raises ModelError if it returns a gradient."""
        if hook(self.module, self._packed(gradients), self._packed(gradients)) is not None:
            raise ModelError(
                f"{self.recorder.name}: the hook {described(hook)} of {self._of} computes with grad_output; compute "
                "the gradient from grad_input, or register it by register_full_backward_pre_hook"
            )
