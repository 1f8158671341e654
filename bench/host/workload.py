"""The workloads as arrays: the common input of all programs of the benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from autodiff_gen.model.loader import load_file
from autodiff_gen.model.model import Model

BATCHES = {
    "w1": 256,
    "w2": 8,
    "w3b1": 64,
    "w3b8": 8,
    "w4": 1,
    "w5": 1,
    "w6": 16,
}  # number of batches before the data repeats


@dataclass(frozen=True)
class Workload:
    """`weights` by PyTorch's names; x f32[batches, batch, ...], y u8[batches, batch] or f32[batches, batch, 1]."""

    name: str
    model: Model
    weights: dict[str, Any]
    x: Any
    y: Any
    lr: float

    @property
    def batches(self) -> int:
        return len(self.x)


def load(name: str) -> Workload:
    """A workload of bench/workloads by name."""
    file = load_file(name)
    assert isinstance(file.made, Model) and file.batch is not None
    pairs = [file.batch(step) for step in range(BATCHES[name])]
    x, y = (np.ascontiguousarray(np.stack([p[i] for p in pairs])) for i in (0, 1))
    trainer = file.made.on_host()
    weights = {k: np.array(v) for k, v in trainer.state_dict().items()}
    lr = trainer.program.default_lr
    assert lr is not None
    return Workload(name, file.made, weights, x, y, lr)
