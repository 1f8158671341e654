"""A PyTorch network that begins with the weights of a trainer."""

from __future__ import annotations

from typing import Any


def with_weights_of(net: Any, state: dict[str, Any]) -> Any:
    """The PyTorch network `net` with a trainer's parameters of the same names."""
    import torch

    torch.set_num_threads(1)
    names = net.state_dict().keys()
    net.load_state_dict({k: torch.tensor(state[k]) for k in names})
    return net
