"""The update of a parameter that a loop reads again follows in a separate loop; where it read a view of a sum, the
first loop had to store the view, for which it has no memory: a BatchNorm in a gate did not compile for Cortex-M, and
the update of a LayerNorm read memory that nothing had written."""

import numpy as np
import pytest
from plans_for_boards import assert_trains_as_for_the_host

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.ir.node import Value

pytestmark = pytest.mark.cc


class Gate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc, self.bn = nn.Linear(8, 8, bias=False), nn.BatchNorm1d(8)

    def forward(self, x: Value) -> Value:
        return x * self.bn(self.fc(x)).sigmoid()


def test_a_batch_norm_in_a_gate_trains(rng: np.random.Generator) -> None:
    net = nn.Sequential(nn.Linear(8, 8), nn.Hardswish(), Gate(), nn.Linear(8, 3))
    model = ag.Model.supervised(net, input=(2, 8), loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=0.05))
    assert_trains_as_for_the_host(model, "stm32", rng)
