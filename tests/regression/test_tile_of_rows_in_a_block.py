"""A loop over a block of accumulators whose rows are kept in registers was divided into blocks once more, by a loop
that did not contain it: two layers of LayerNorm, GELU, BatchNorm and ReLU did not compile for Cortex-M4F."""

import numpy as np
import pytest
from plans_for_boards import assert_trains_as_for_the_host

import autodiff_gen as ag
from autodiff_gen import nn, optim

pytestmark = pytest.mark.cc


def test_the_plan_for_a_board_trains_as_that_for_the_host(rng: np.random.Generator) -> None:
    layers: list[nn.Module] = []
    for _ in range(2):
        layers += [nn.Linear(24, 24), nn.LayerNorm(24), nn.GELU(), nn.BatchNorm1d(24), nn.ReLU()]
    net = nn.Sequential(*layers, nn.Linear(24, 3))
    model = ag.Model.supervised(net, input=(4, 24), loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=0.01))
    assert_trains_as_for_the_host(model, "stm32", rng)
