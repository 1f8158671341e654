"""Moving averages of the parameters, as in torch.optim.swa_utils.AveragedModel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from .. import functional as F
from .. import init
from ..errors import ModelError
from ..ir.build import make_state
from ..ir.graph import State
from ..ir.node import Value
from ..ir.types import Type, s32

MOST_UPDATES = 2**31 - 1  # n_averaged saturates here


class EMA:
    """The exponential moving average of every trained parameter, as AveragedModel with get_ema_multi_avg_fn(decay) in
    torch.optim.swa_utils: the first update copies the parameter, each later update adds
    (1 - decay) * (parameter - average). States: `ema.<parameter>`, and `ema.n_averaged`, the number of updates (s32).

    `<m>_predict_averaged` uses the averages; frozen parameters and buffers are the model's. Raises ModelError for a
    decay outside 0 to 1.
    """

    def __init__(self, decay: float = 0.999) -> None:
        if isinstance(decay, bool) or not isinstance(decay, int | float) or not 0 <= decay <= 1:
            raise ModelError(f"optim.EMA: decay={decay!r} must be a number from 0 to 1")
        self.decay = float(decay)

    def averages(self, parameters: Sequence[State]) -> dict[State, Value]:
        """Parameter -> the average before the step; both have the same initial value."""
        return {
            p: make_state(replace(p, name=f"ema.{p.name}", trainable=False, role="optimizer"))
            for p in parameters
        }

    def updates(self, averages: Mapping[State, Value], new: Mapping[State, Value]) -> dict[State, Value]:
        """The new averages and the new number of updates, given the new parameters."""
        before = make_state(State("ema.n_averaged", Type(s32, ()), init.zeros(()), False, "optimizer"))
        first = F.eq(before, 0)
        out: dict[State, Value] = {}
        for parameter, old in averages.items():
            average = old + (new[parameter] - old) * (1.0 - self.decay)
            out[_state(old)] = F.where(first, new[parameter], average)
        out[_state(before)] = before + F.to(before < MOST_UPDATES, "s32")
        return out


def _state(old: Value) -> State:
    state: State = old.node.attrs["state"]
    return state
