"""Networks of PyTorch as ours: outputs, loss, gradients and training steps, and what carries over."""

import pytest
import torch
from torch_networks import NETWORKS

from autodiff_gen.check.original import comparisons
from autodiff_gen.frontends.imported.source import network_source
from autodiff_gen.frontends.pytorch.convert import convert
from autodiff_gen.frontends.pytorch.export import saved
from autodiff_gen.frontends.pytorch.pt2 import read

pytestmark = pytest.mark.torch


def imported(name):
    torch.manual_seed(3)
    make, example = NETWORKS[name]
    file = saved(make(), example)
    return convert(read(file, name), name), file


@pytest.mark.parametrize("name", NETWORKS)
def test_values_gradients_and_steps(name):
    program, file = imported(name)
    assert all(shape[0] is None for n, shape in program.shapes.items() if n in program.inputs), "a free batch"
    wrong = [row for row in comparisons(program, file, name) if not row.good]
    assert not wrong, network_source(program)[0]
