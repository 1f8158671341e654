"""Replace a loss function by the layer of nn that computes it: the layer tells which target the loss needs."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .. import nn
from ..errors import ModelError

# Functions whose layers are not called as they are.
NAMES = {"binary_cross_entropy": "BCELoss", "binary_cross_entropy_with_logits": "BCEWithLogitsLoss"}
_PACKAGE = __name__.partition(".")[0]


def layer_of(loss: Any) -> Any:
    """The layer for a loss function of autodiff_gen or PyTorch, such as `F.cross_entropy`, or for a functools.partial
    of one; another loss is returned as it is. Raises ModelError for a function of PyTorch without a counterpart."""
    is_partial = isinstance(loss, functools.partial) and not loss.args
    function, options = (loss.func, loss.keywords) if is_partial else (loss, {})
    package, name = (getattr(function, a, None) or "" for a in ("__module__", "__name__"))
    of_torch = package.partition(".")[0] == "torch"
    if isinstance(function, type) or not (of_torch or package.startswith(f"{_PACKAGE}.functional")):
        return loss
    wanted = NAMES.get(name, name.replace("_", "")).lower().removesuffix("loss") + "loss"
    layer = next((cls for n, cls in vars(nn).items() if n.lower() == wanted), None)
    if layer is None:
        if of_torch:
            raise ModelError(
                f"loss: torch.nn.functional.{name} has no counterpart in ag.nn; write it as a function of (scores, "
                "target) with ag.functional"
            )
        return loss
    return layer(**{k: np.asarray(v.detach()) if hasattr(v, "detach") else v for k, v in options.items()})
