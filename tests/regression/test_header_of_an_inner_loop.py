"""The C of a batch in micro-batches whose masks are packed did not include the header of the functions that pack
them."""

import numpy as np
import pytest
from plans_for_boards import assert_trains_as_for_the_host

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.ir.node import Value

pytestmark = pytest.mark.cc


class Block(nn.Module):
    def __init__(self, activation: nn.Module) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 16), activation, nn.Linear(16, 8))

    def forward(self, x: Value) -> Value:
        return x + self.inner(x)


def test_masks_are_packed_in_micro_batches(rng: np.random.Generator) -> None:
    first = Block(nn.LeakyReLU(0.1))
    for layer in (1, 3):
        first.inner[layer].weight.requires_grad_(False)
    net = nn.Sequential(first, Block(nn.GELU()), Block(nn.PReLU()), nn.Flatten(), nn.Linear(48, 3))
    model = ag.Model.supervised(
        net, input=(8, 6, 8), loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=0.05)
    )
    program = assert_trains_as_for_the_host(model, "mps2_an385", rng, ram=11000)
    assert program.entries[0].plan.samples and "ag_bits.h" in program.headers
