"""The workloads as arrays: the common input of all programs of the benchmark."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from autodiff_gen.model.loader import load_file
from autodiff_gen.model.model import Model
from autodiff_gen.targets import installation

BATCHES = {
    "w1": 256,
    "w2": 8,
    "w3b1": 64,
    "w3b8": 8,
    "w4": 1,
    "w5": 1,
    "w6": 16,
}  # number of batches before the data repeats
NAMES = (*BATCHES, *(f"{network}b{size}" for network in installation.networks() for size in (1, 8)))

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workloads"))


@dataclass(frozen=True)
class Workload:
    """`weights` by PyTorch's names; x f32[batches, batch, ...], y u8[batches, batch] or f32[batches, batch, 1].

    `network`: of a network, what makes it of the layers of autodiff_gen.nn or torch.nn. `compared`: the losses of
    so many steps agree among all programs, to this relative error.
    """

    name: str
    model: Model
    weights: dict[str, Any]
    x: Any
    y: Any
    lr: float
    network: Callable[[Any], Any] | None = None
    compared: tuple[int, float] = (50, 1e-5)

    @property
    def batches(self) -> int:
        return len(self.x)


def load(name: str) -> Workload:
    """One of NAMES: a workload of bench/workloads, or a network with the size of its batch, such as resnet8b8."""
    if name in BATCHES:
        file = load_file(name)
        assert isinstance(file.made, Model) and file.batch is not None
        return _workload(name, file.made, file.batch, BATCHES[name])
    network, _, size = name.rpartition("b")
    task = importlib.import_module(network).TASK
    # Deep networks amplify rounding errors by their normalisation: after an update their losses differ.
    more = {"network": task.network, "compared": (1, 1e-4)}
    return _workload(name, task.model(int(size)), task.batches(int(size)), 16 // int(size), **more)


def title(name: str) -> str:
    """The title of one of NAMES, with the batch of a network if it is not 1."""
    if name in BATCHES:
        return installation.title(name)
    network, _, size = name.rpartition("b")
    return installation.title(network) + ("" if size == "1" else f", batch {size}")


def _workload(name: str, model: Model, batch: Callable[[int], Any], batches: int, **more: Any) -> Workload:
    pairs = [batch(step) for step in range(batches)]
    x, y = (np.ascontiguousarray(np.stack([p[i] for p in pairs])) for i in (0, 1))
    weights = {state.name: state.init.array() for state in model.states}
    assert model.default_lr is not None
    return Workload(name, model, weights, x, y, model.default_lr, **more)
