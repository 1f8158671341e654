"""Elements are compared with their maximum as they were when it was found: where compilers contract products and sums
into one instruction, the same expression in another loop has other bits, no element is equal to the maximum, and its
gradient was lost. Found on Cortex-M4F, for the largest channels of a normalised image that the backward pass computed
again."""

import re

import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.targets import board


class Largest(nn.Module):
    """The largest channels of an image times a scale; or, deep, of one that is normalised, padded with itself, and
    normalised again."""

    def __init__(self, deep: bool) -> None:
        super().__init__()
        self.scale = nn.Parameter(ag.init.uniform((3, 1, 1), bound=1.0, seed=1))
        self.norm = nn.BatchNorm2d(3) if deep else None
        self.groups = nn.GroupNorm(3, 3) if deep else None

    def forward(self, x):
        if self.norm is not None:
            x = self.norm(self.groups(F.cat([self.norm(x), x], 3)))
        return F.flatten(F.amax(x * self.scale + 0.25, 1), 1)


class Gaussian(nn.Module):
    def forward(self, input, target):
        return F.gaussian_nll_loss(input, target, F.softplus(input) + 0.2)


@pytest.mark.parametrize("ram", [None, 6200])
@pytest.mark.parametrize("deep", [False, True])
def test_what_is_compared_with_a_maximum_is_computed_once(deep, ram):
    model = ag.Model.supervised(
        Largest(deep), input=(2, 3, 4, 7), loss=Gaussian(), optimizer=optim.SGD(lr=0.1)
    )
    program = compile_model(model, "net", None, board.load("stm32"), ram)
    text = re.sub(r"\s+", " ", emit(program)["net.c"])
    compared = re.findall(r"int32_t val\w* = ([^;]+) == ", text)
    assert compared and all(re.fullmatch(r"\w+(\[[^]]+\])?", left) for left in compared), compared
