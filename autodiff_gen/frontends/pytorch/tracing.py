"""The mode that records an export."""

from __future__ import annotations

from typing import Any


def tracing_mode(torch: Any) -> Any:
    """The tracing mode of the running export, read from PyTorch's internals; None outside of an export."""
    key = torch._C._TorchDispatchModeKey.PROXY
    return torch._ops._get_dispatch_mode_pre_dispatch(key) or torch._C._get_dispatch_mode(key)
