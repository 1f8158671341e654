"""A module in evaluation mode, whose program may be another one than in training mode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .python_state import state_kept

LAYERS = "torch.nn.modules."


@contextmanager
def in_evaluation(torch: Any, module: Any) -> Iterator[None]:
    """In the block the module is in evaluation mode, without the fast functions by which PyTorch computes whole
    transformer layers in this mode."""
    fast = torch.backends.mha.get_fastpath_enabled()
    with state_kept(torch, module):
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            module.eval()
            yield
        finally:
            torch.backends.mha.set_fastpath_enabled(fast)


def follows_flags(module: Any) -> bool:
    """Whether the mode of a module affects only flags of its layers, because all of its code is in torch.nn."""
    hooks = ("_forward_hooks", "_forward_pre_hooks")
    return all(
        type(m).__module__.startswith(LAYERS)
        and "forward" not in vars(m)
        and not any(getattr(m, name) for name in hooks)
        for m in module.modules()
    )
