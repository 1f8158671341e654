"""An update that followed in a separate loop took with it a product that reads another state, which the first loop
overwrites, so that each loop had to come before the other: two parameters that scale and shift one sample did not
compile for Cortex-M."""

import numpy as np
import pytest
from plans_for_boards import assert_trains_as_for_the_host

import autodiff_gen as ag
from autodiff_gen import init, nn, optim
from autodiff_gen.ir.node import Value

pytestmark = pytest.mark.cc


class Affine(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(init.uniform((1, 1, 9), bound=1.0, seed=1))
        self.shift = nn.Parameter(init.uniform((1, 5, 9), bound=1.0, seed=2))

    def forward(self, x: Value) -> Value:
        return ((x + self.shift) * self.scale).mean(-1).flatten(1)


def test_a_scale_and_a_shift_of_one_sample_train(rng: np.random.Generator) -> None:
    model = ag.Model.supervised(
        nn.Sequential(Affine(), nn.Linear(5, 3)),
        input=(1, 1, 5, 9),
        loss=nn.CrossEntropyLoss(),
        optimizer=optim.SGD(lr=0.05),
        guard=None,
    )
    assert_trains_as_for_the_host(model, "stm32", rng)
