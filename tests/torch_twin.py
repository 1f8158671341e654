"""A network beside PyTorch's of the same weights, step by step."""

from __future__ import annotations

from typing import Any


def with_weights_of(twin: Any, state: dict[str, Any]) -> Any:
    """The PyTorch network `twin` with a trainer's parameters of the same names."""
    import torch

    torch.set_num_threads(1)
    names = twin.state_dict().keys()
    twin.load_state_dict({k: torch.tensor(state[k]) for k in names})
    return twin
