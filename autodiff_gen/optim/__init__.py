"""Update rules, learning-rate schedules and clipping with the names, arguments, defaults and arithmetic of torch.optim.
They are graph ops, so fusion, in-place updates and memory planning apply to them as to the model."""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from ..errors import unknown_name as _unknown_name
from ..ir.graph import State
from . import adam_variants, lr_scheduler, rules
from .adam_variants import *  # noqa: F403
from .alternatives import ALTERNATIVES as _ALTERNATIVES
from .clip import clip_grad_norm, clip_grad_value
from .ema import EMA
from .optimizer import Gradients, Optimizer, Step
from .rules import *  # noqa: F403

__all__ = [
    *rules.__all__,
    *adam_variants.__all__,
    "EMA",
    "clip_grad_norm",
    "clip_grad_value",
    "Optimizer",
    "Step",
    "State",
    "Gradients",
    "lr_scheduler",
]

if not _TYPE_CHECKING:

    def __getattr__(name: str) -> _Any:
        raise _unknown_name("optim", name, _ALTERNATIVES, __all__)
