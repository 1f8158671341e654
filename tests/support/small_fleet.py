"""A small network and its samples, for tests of fleets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from autodiff_gen.cli.main import main

MODEL = """import autodiff_gen as ag
from autodiff_gen import nn, optim
net = nn.Sequential(nn.Linear(5, {units}), nn.{activation}(), nn.Linear({units}, 3))
model = ag.Model.supervised(net, (4, 5), nn.CrossEntropyLoss(), optim.SGD(lr=0.3){more})
"""
INTEGERS = """import autodiff_gen as ag
import numpy as np
from autodiff_gen import functional as F, nn, optim
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(5, 6)
        rng = np.random.default_rng(1)
        self.last = nn.QuantizedParameter(rng.integers(-127, 128, (3, 6)).astype(np.int8), 0.02)
    def forward(self, x):
        return F.linear(F.relu(self.first(x)), F.dequantize(self.last))
model = ag.Model.supervised(Net(), (4, 5), nn.CrossEntropyLoss(), optim.SGD(lr=0.3))
"""
BATCHES = """import autodiff_gen as ag
from autodiff_gen import functional as F, nn, optim
x, label = ag.Input("x", (4, 5)), ag.Input("label", (4,), dtype="u8")
scores = nn.Linear(5, 3)(x)
outputs, loss = {"scores": scores}, F.cross_entropy(scores, label)
model = ag.Model(inputs=[x], targets=[label], outputs=outputs, loss=loss, optimizer=optim.SGD(lr=0.1))
"""


def write_model(units: int = 6, activation: str = "ReLU", more: str = "") -> None:
    """m.py."""
    Path("m.py").write_text(MODEL.format(units=units, activation=activation, more=more))


def samples(count: int = 90) -> dict[str, Any]:
    """Inputs and labels that the network learns."""
    rng = np.random.default_rng(1)
    label = rng.integers(0, 3, count)
    return {"x": (rng.normal(size=(count, 5)) * 0.2 + np.eye(3, 5)[label]).astype(np.float32), "label": label}


def write_data(train: int = 60, test: int = 30) -> None:
    """data.npz, with samples to test on."""
    arrays = samples(train + test)
    tests = {f"test_{name}": array[train:] for name, array in arrays.items()}
    np.savez("data.npz", **{name: array[:train] for name, array in arrays.items()}, **tests)


def fleet(*words: str) -> int:
    """The command on m.py and data.npz."""
    return main(["fleet", "m.py", "--data", "data.npz", *words])
