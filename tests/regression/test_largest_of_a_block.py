"""A reduction over all rows of a product that is computed in blocks was taken for one of each row, whose result is gone
after it: guard="gradients" did not compile for Cortex-M with Adamax."""

import numpy as np
import pytest
from plans_for_boards import assert_trains_as_for_the_host

import autodiff_gen as ag
from autodiff_gen import nn, optim

pytestmark = pytest.mark.cc


def test_guarded_gradients_train_by_adamax(rng: np.random.Generator) -> None:
    net = nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, 3))
    model = ag.Model.supervised(
        net, input=(3, 8), loss=nn.CrossEntropyLoss(), optimizer=optim.Adamax(lr=0.01), guard="gradients"
    )
    assert_trains_as_for_the_host(model, "stm32", rng)
