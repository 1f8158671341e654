"""Whether a model's loss is a mean or a sum over samples: found by the loss of a batch that has each sample twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..codegen.board_link_layout import entry
from ..errors import ModelError
from ..host.trainer import Trainer

_NEAR = 0.2  # of the ratio of the two losses; random numbers of a network change it


def reduction_of(trainer: Trainer, data: Mapping[str, Any], names: Sequence[str]) -> str:
    """`mean` or `sum`. data: samples by name; names: in the order of train_step. The loss of a model whose batch is
    fixed, or is one sample, counts as a mean. Raises ModelError where neither fits."""
    train = entry(trainer.program, "train_step")
    n = min(trainer.program.batch // 2, len(data[names[0]]))
    if not train.takes_n or n < train.least_n:
        return "mean"
    state = trainer.state_dict()
    losses = []
    for times in (1, 2):
        trainer.load_state_dict(state)
        losses.append(trainer.train_step(*(np.concatenate([data[name][:n]] * times) for name in names)))
    trainer.load_state_dict(state)
    ratio = losses[1] / losses[0] if losses[0] else 0.0
    for factor, reduction in ((1.0, "mean"), (2.0, "sum")):
        if abs(ratio / factor - 1.0) < _NEAR:
            return reduction
    raise ModelError(
        f"the loss of {n} samples is {losses[0]:.4g}, and of the same samples twice {losses[1]:.4g}: neither a mean "
        'nor a sum over samples; give ag.Model accumulate="mean" or "sum"'
    )
