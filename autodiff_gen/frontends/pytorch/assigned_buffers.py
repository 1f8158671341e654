"""Buffers that a forward pass assigns: torch.export drops an assignment in a module below the network.

self.mean = new    ->    mean.copy_(new) at the end of the network's forward
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ...errors import ModelError


@contextmanager
def forward_inside(module: Any, around: Callable[..., Any]) -> Iterator[None]:
    """Until the end `around(forward, *inputs)` is called in place of the module's forward."""
    own, forward = vars(module).get("forward"), module.forward
    module.forward = functools.wraps(forward)(functools.partial(around, forward))
    try:
        yield
    finally:
        if own is None:
            del module.forward
        else:
            module.forward = own


@contextmanager
def assigned_buffers(torch: Any, module: Any, name: str) -> Iterator[None]:
    """While the module, called `name` in messages, is exported: what its buffers are after a call is stored in the
    buffers of before."""

    def storing(forward: Any, *args: Any, **kwargs: Any) -> Any:
        held = [(path, m._buffers, dict(m._buffers)) for path, m in module.named_modules()]
        result = forward(*args, **kwargs)
        for path, buffers, before in held:
            for key, old in before.items():
                new = buffers.get(key)
                if new is old or not isinstance(new, torch.Tensor) or not isinstance(old, torch.Tensor):
                    continue
                if new.shape != old.shape or new.dtype != old.dtype:
                    raise ModelError(
                        f"{name}: forward assigns {'.'.join(filter(None, (path, key)))!r} a tensor of another shape or "
                        f"dtype, {_type(new)} instead of {_type(old)}; keep the buffer's"
                    )
                old.copy_(new)
                buffers[key] = old
        return result

    with forward_inside(module, storing):
        yield


def _type(tensor: Any) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
