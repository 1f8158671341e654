"""Tensors that are no weights but show the memory of one. torch.export would take such a tensor for a constant; while a
module is exported, a use of the tensor becomes a view of the weight.

    self.w_t = self.lin.weight.detach().t()    ->    lin.weight.detach().permute(1, 0)
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...errors import ModelError, quoted
from .hook_names import caller
from .running_statistics import STATISTICS
from .weight_views import Elements, elements_of, steps, within


@contextmanager
def forward_inside(module: Any, around: Callable[..., Any]) -> Iterator[None]:
    """In the block `around(forward, *inputs)` is called in place of the module's forward."""
    own, forward = vars(module).get("forward"), module.forward

    @functools.wraps(forward)
    def inside(*args: Any, **kwargs: Any) -> Any:  # a function, as PyTorch 2.6 asks for its code
        return around(forward, *args, **kwargs)

    module.forward = inside
    try:
        yield
    finally:
        if own is None:
            del module.forward
        else:
            module.forward = own


@contextmanager
def shown_weights(torch: Any, module: Any, name: str) -> Iterator[None]:
    """Replace such tensors while the module, called `name` in messages, is exported, or called with weights of another
    dtype.

    Buffers that no state_dict has count as weights if they share memory, so that the file says that they do.
    """

    def weights() -> dict[str, Any]:
        named = (module.named_parameters, module.named_buffers)
        return {n: t for every in named for n, t in every(remove_duplicate=False)}

    memory: dict[int, list[tuple[str, Any]]] = {}  # the largest weights first, by address
    for path, weight in sorted(weights().items(), key=lambda pair: -pair[1].numel()):
        if _has_memory(torch, weight):
            memory.setdefault(_address(weight), []).append((path, weight.data))
    traced: dict[str, Any] = {}  # the weights as values in a call
    copies: list[tuple[Any, str, int]] = []  # (copy of elements, the weight's name, the copy's version)

    def tracing(forward: Any, *args: Any, **kwargs: Any) -> Any:
        traced.update(weights())
        try:
            with Shown():
                return forward(*args, **kwargs)
        finally:
            traced.clear()
            copies.clear()

    class Shown(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if torch.compiler.is_dynamo_compiling():  # as torch.cond is
                return func(*args, **(kwargs or {}))
            given, named = mapped(args), mapped(kwargs or {})
            result = func(*given, **named)
            updated = {id(t) for t in _updated(torch, func, given, named)} if copies else ()
            for copy, path, version in copies:
                if copy._version != version or id(copy) in updated:
                    raise ModelError(
                        f"{name}: a tensor that shows a part of {quoted(path)} is changed in place ({caller(torch)}); "
                        f"change that part of {quoted(path)} itself"
                    )
            return result

    def mapped(given: Any) -> Any:
        if type(given) in (torch.Tensor, torch.nn.Parameter):
            return shown(given)
        if type(given) in (tuple, list):
            return type(given)(map(mapped, given))
        if type(given) is dict:
            return {key: mapped(value) for key, value in given.items()}
        return given

    def shown(given: Any) -> Any:
        found = memory.get(_address(given), ()) if _has_memory(torch, given) else ()
        for path, weight in found:
            own, whole = _elements(given), _elements(weight)
            if path not in traced or not np.isin(own, whole).any():
                continue
            if given.dtype != weight.dtype:
                raise ModelError(
                    f"{name}: a tensor shows the memory of {quoted(path)} as {given.dtype} ({caller(torch)}); compute "
                    "it in forward from the weight"
                )
            if not np.isin(own, whole).all():
                raise ModelError(
                    f"{name}: a tensor shows a part of the memory of {quoted(path)}, and more ({caller(torch)}); "
                    "make it of a clone(), or compute it in forward from the parameter"
                )
            view = traced[path] if given.requires_grad else traced[path].detach()
            made = steps(tuple(weight.shape), within(whole, own))
            for function, *arguments in made:
                if isinstance(arguments[0], np.ndarray):
                    view = view[torch.from_numpy(arguments[0]).long()]
                else:
                    view = getattr(view, function)(arguments[0])
            if any(isinstance(first, np.ndarray) for _, first in made):
                copies.append((view, path, view._version))
            return view
        return given

    hidden = []
    for inner in module.modules():
        for key in [*inner._non_persistent_buffers_set]:
            buffer = inner._buffers.get(key)
            if buffer is not None and len(memory.get(_address(buffer), ())) > 1:
                hidden.append((inner._non_persistent_buffers_set, key))
    try:
        for names, key in hidden:
            names.discard(key)
        with forward_inside(module, tracing):
            yield
    finally:
        for names, key in hidden:
            names.add(key)


def _updated(torch: Any, func: Any, args: Any, kwargs: Any) -> list[Any]:
    """The running statistics that a normalisation changes; PyTorch does not count a new version of them."""
    if inspect.isfunction(func):
        bound = inspect.signature(func).bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
    else:
        packet = getattr(torch.ops.aten, getattr(func, "__name__", "").partition(".")[0], None)
        if packet is None:
            return []
        arguments = getattr(packet, packet.overloads()[0])._schema.arguments
        given = {**dict(zip([a.name for a in arguments], args, strict=False)), **kwargs}
    if given.get("training", given.get("use_input_stats", True)) is False:
        return []
    return [given[name] for name in STATISTICS if given.get(name) is not None]


def _has_memory(torch: Any, tensor: Any) -> bool:
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):  # as of torch.vmap
        return False
    return tensor.layout is torch.strided and tensor.numel() > 0


def _address(tensor: Any) -> int:
    return int(tensor.untyped_storage().data_ptr())


def _elements(tensor: Any) -> Elements:
    return elements_of(tensor.storage_offset(), tensor.shape, tensor.stride())
