"""A loop over a block of accumulators whose rows are kept in registers was divided into blocks once more, by a loop
that did not contain it: two layers of LayerNorm, GELU, BatchNorm and ReLU did not compile for Cortex-M4F."""

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.host.compiler import Compiler, find_compiler
from autodiff_gen.host.trainer import Trainer, host_trainer
from autodiff_gen.targets import board

pytestmark = pytest.mark.cc


def test_the_plan_for_a_board_trains_as_that_for_the_host(rng: np.random.Generator) -> None:
    layers: list[nn.Module] = []
    for _ in range(2):
        layers += [nn.Linear(24, 24), nn.LayerNorm(24), nn.GELU(), nn.BatchNorm1d(24), nn.ReLU()]
    net = nn.Sequential(*layers, nn.Linear(24, 3))
    model = ag.Model.supervised(net, input=(4, 24), loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=0.01))
    program = compile_model(model, "model", ["ref"], board.load("stm32"))
    trainers = [host_trainer(model), Trainer(program, Compiler(find_compiler(), ""))]
    x, label = rng.standard_normal((3, 4, 24)).astype(np.float32), rng.integers(0, 3, (3, 4))
    losses = [[t.train_step(*batch) for batch in zip(x, label, strict=True)] for t in trainers]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-5)
    expected, states = (t.state_dict() for t in trainers)
    for name, value in states.items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-4, atol=1e-6, err_msg=name)
