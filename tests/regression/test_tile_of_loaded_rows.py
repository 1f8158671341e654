"""A loop that stores the terms of a sum, and whose rows are in registers for it, was divided into blocks once more: a
PReLU of one slope after a BatchNorm did not compile for a small RAM budget."""

import numpy as np
import pytest
from plans_for_boards import assert_trains_as_for_the_host

import autodiff_gen as ag
from autodiff_gen import nn, optim

pytestmark = pytest.mark.cc


def test_a_prelu_after_a_batch_norm_trains_in_a_budget(rng: np.random.Generator) -> None:
    net = nn.Sequential(
        *(nn.Conv2d(1, 6, 3, padding=1), nn.CELU(), nn.BatchNorm2d(6), nn.PReLU()),
        *(nn.AvgPool2d(3, 2), nn.Flatten(), nn.Linear(72, 3)),
    )
    model = ag.Model.supervised(
        net, input=(1, 1, 9, 8), loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=0.05)
    )
    assert_trains_as_for_the_host(model, "stm32", rng, ram=5020)
