"""Buffers that a forward pass assigns: torch.export drops an assignment in a module below the network.

self.mean = new    ->    mean.copy_(new) after the network's forward
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...errors import ModelError, quoted
from .tracing import tracing_mode


@contextmanager
def assigned_buffers(torch: Any, module: Any, name: str) -> Iterator[None]:
    """While the module, called `name` in messages, is exported: after a call with all its hooks, the values of buffers
    that it assigned are stored in the original buffers."""
    held: list[tuple[str, Any, dict[str, Any]]] = []

    def begin(*_: Any) -> None:
        of_torch = torch.nn.modules.module._global_buffer_registration_hooks
        for key in [k for k, hook in of_torch.items() if str(hook.__module__).startswith("torch.")]:
            del of_torch[key]  # torch.export copies some of the network's assignments
        held[:] = [(path, m._buffers, dict(m._buffers)) for path, m in module.named_modules()]

    def store(_: Any, args: Any, result: Any) -> Any:
        assigned: list[tuple[Any, str, Any, Any]] = []
        for path, buffers, before in held:
            for key in {**before, **buffers}:
                old, new = before.get(key), buffers.get(key)
                if new is not old and (old is not None or _is_computed(torch, new)):
                    check(_joined(path, key), old, new)
                    assigned.append((buffers, key, old, new.clone()))  # new may be another old buffer
        if assigned:  # the result may be an old buffer
            result = torch.utils._pytree.tree_map_only(torch.Tensor, torch.clone, result)
        for buffers, key, old, new in assigned:
            old.copy_(new)
            buffers[key] = old
        return result

    def check(place: str, old: Any, new: Any) -> None:
        """Raises ModelError if `new` cannot be stored in the buffer `old`."""
        if not isinstance(old, torch.Tensor):
            raise ModelError(
                f"{name}: forward assigns {quoted(place)}, which is no tensor before; give it a tensor "
                "of its shape in __init__"
            )
        if not isinstance(new, torch.Tensor):
            raise ModelError(
                f"{name}: forward assigns {quoted(place)} no tensor; keep a buffer, and assign zeros in place of None"
            )
        if new.shape != old.shape or new.dtype != old.dtype:
            raise ModelError(
                f"{name}: forward assigns {quoted(place)} a tensor of another shape or dtype, "
                f"{_type(new)} instead of {_type(old)}; keep the buffer's"
            )
        names = [_joined(path, key) for path, _, kept in held for key, t in kept.items() if t is old]
        if len(names) > 1:
            shared = " and ".join(map(quoted, names[:2]))
            raise ModelError(
                f"{name}: forward assigns {quoted(place)}, and {shared} are one tensor; change it in place by copy_"
            )
        others = [*module.named_parameters()]
        for path, buffers, kept in held:
            others += [(_joined(path, key), t) for key, t in buffers.items() if t is kept.get(key)]
        other = next((n for n, t in others if t is not None and _memory(t) == _memory(new)), None)
        if other is not None:
            raise ModelError(
                f"{name}: forward assigns {quoted(place)} the memory of {quoted(other)}, with which it would "
                "change; assign a clone()"
            )

    hooks = (module.register_forward_pre_hook(begin, prepend=True), module.register_forward_hook(store))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _is_computed(torch: Any, tensor: Any) -> bool:
    """Whether a tensor of an export is computed from inputs or weights. Others are tables, which each call makes
    anew."""
    tracing = torch.fx.experimental.proxy_tensor
    mode = tracing_mode(torch)
    if mode is None or not isinstance(tensor, torch.Tensor):
        return False
    found = tracing.get_proxy_slot(tensor, mode.tracer, None)
    nodes = [] if found is None else [found.proxy.node]
    seen = set(nodes)
    for node in nodes:  # grows
        if node.op == "placeholder":
            return True
        operands = [n for n in node.all_input_nodes if isinstance(n.meta.get("val"), torch.Tensor)]
        nodes += [n for n in operands if n not in seen]
        seen.update(operands)
    return False


def _memory(tensor: Any) -> int:
    return int(tensor.untyped_storage()._cdata)


def _type(tensor: Any) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
