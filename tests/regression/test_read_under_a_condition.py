"""GCC 12 vectorises a read under a condition wrongly where the result reuses the buffer of an operand, in a nest of
loops, with AVX2 at -O3: a gradient through relu came out wrong. Both choices are read before one is taken."""

from __future__ import annotations

import re

import numpy as np
import pytest
from c_build import WIDTHS, widths

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.host.trainer import host_trainer

pytestmark = pytest.mark.cc


def lenet() -> ag.Model:
    net = nn.Sequential(
        *(nn.Conv2d(1, 2, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(2, 16, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(256, 4)),
    )
    return ag.Model.supervised(
        net, input=(8, 1, 28, 28), loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=0.1)
    )


@pytest.mark.parametrize("width", widths())
def test_a_gradient_that_replaces_an_activation(width: str) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(8, 1, 28, 28)).astype(np.float32), rng.integers(0, 4, 8)
    plain = host_trainer(lenet(), opt="-O1")
    wide = host_trainer(lenet(), cc=" ".join(("gcc", *WIDTHS[width])), opt="-O3")
    assert re.search(r"<= 0.0f \? 0.0f : \w+_i;", wide.source["model.c"])
    for trainer in (plain, wide):
        trainer.train_step(x, y)
    other = wide.state_dict()
    for name, value in plain.state_dict().items():
        np.testing.assert_array_equal(value, other[name], name)
